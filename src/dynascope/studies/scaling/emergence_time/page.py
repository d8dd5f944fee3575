"""Figures and text of the page of emergence-time."""

from __future__ import annotations

from dynascope.results import Chart
from dynascope.studies.scaling.emergence_study import STRENGTH

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        "strength",
        "step",
        "How much of each skill is learned over the steps of training, one thin line for each of "
        "{parameters.seeds} networks. Dashed is the forecast, which has seen none of them: it knows how often "
        "each skill is asked for, and how other networks learn one skill alone.",
        log="x",
        title="Skills emerge one after the other",
    ),
    Chart(
        "half_strength_step",
        "skill",
        "The step at which half of a skill is learned: mean and standard deviation of {parameters.seeds} "
        "networks. The most frequent skill came at step {observed.half_strength_step:first} (forecast: "
        "{predicted.half_strength_step:first}), the rarest at {observed.half_strength_step:last} (forecast: "
        "{predicted.half_strength_step:last}).",
        log="y",
        error="half_strength_step_spread",
        title="When each skill is half learned",
        points=True,
    ),
    Chart(
        ("calibration_strength", "calibrated_strength"),
        "time",
        "From what the forecast is made: networks that learn one skill alone, and the logistic curve through "
        "what they have between 0.05 and 0.6. What is beyond is not used, and the curve does not claim it.",
        trained=("calibration_strength",),
        words=("networks", "the curve of theory"),
        title="One skill alone",
        y_label=STRENGTH,
    ),
)

MEANING = (
    "Two-layer networks of {parameters.width} neurons learn {parameters.skills} skills at once. Each is a parity: "
    "whether the number of ones among {parameters.relevant_bits} of the input bits is even or odd; and each is "
    "asked for less often than the one before. For long nothing is seen of a skill, then it is learned quickly, "
    "the frequent ones first. Theory takes two numbers from networks that learn one skill alone, and forecasts "
    "that the first skill is half learned at step {predicted.half_strength_step:first} and the last at "
    "{predicted.half_strength_step:last}; in training it was at {observed.half_strength_step:first} and "
    "{observed.half_strength_step:last}. So far as these agree, what looks like a surprise is foreseen from the "
    "frequencies of the skills. The forecast is for wide networks: in narrow ones the skills that are learned "
    "before delay the later ones, which the forecast does not know."
)
