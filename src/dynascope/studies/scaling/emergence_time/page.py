"""Figures and text of the study `emergence-time`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.scaling.emergence_time.study import EmergenceTime

__all__ = ["figures", "meaning"]


def figures(study: EmergenceTime, result: Comparison) -> list[Chart]:
    """The strengths, the half-strength steps and the calibration."""
    seeds = study.setting.seeds
    return [
        Chart(
            "strength",
            "step",
            f"Strength of each skill over training, one thin line for each of {seeds} networks. The dashed curve is "
            "the forecast. It uses only the frequencies of the skills and a calibration on other networks, which "
            "learn one skill alone.",
            log="x",
            title="Strength of the skills during training",
        ),
        Chart(
            "half_strength_step",
            "skill",
            f"Step at which a skill reaches half strength: mean and standard deviation of {seeds} networks, and the "
            f"forecast (dashed). The mean is {_half_steps(result)}.",
            log="y",
            error="half_strength_step_spread",
            title="Half-strength step of each skill",
            points=True,
        ),
        Chart(
            ("calibration_strength", "calibrated_strength"),
            "time",
            "Calibration: networks that learn one skill alone, and the logistic curve fitted to their mean strength "
            "between 0.05 and 0.6. The fit does not use values outside this range, and the theory makes no claim "
            "there.",
            trained=("calibration_strength",),
            words=("networks", "fitted logistic curve"),
            title="Calibration on one skill",
            y_label="strength of the skill (1: learned)",
        ),
    ]


def meaning(study: EmergenceTime, result: Comparison) -> str:
    """How sudden learning can be forecast, with the first and the last half-strength step."""
    setting = study.setting
    return (
        f"Two-layer networks of {setting.width} neurons learn all skills of multitask sparse parity at once. The "
        f"number of skills is {setting.skills}, and each is less frequent than the one before. A skill is the parity "
        f"of {setting.relevant_bits} input bits: whether the number of ones is even or odd. A skill shows almost no "
        "progress for a long time and is then learned quickly. Theory calibrates two constants on networks that learn "
        "one skill alone and forecasts the step at which every skill reaches half strength. In training the mean step "
        f"is {_half_steps(result)}. Where measured and forecast steps agree, the frequencies of the skills predict "
        "when a seemingly sudden ability appears. The forecast assumes wide networks. In narrow networks the skills "
        "that are learned first delay the later ones, and the theory does not include this delay."
    )


def _half_steps(result: Comparison) -> str:
    """The measured and forecast half-strength steps of the first and the last skill, as part of a sentence."""
    measured, forecast = (side["half_strength_step"] for side in (result.observed, result.predicted))
    ends = dict.fromkeys((0, measured.size - 1))
    steps = [f"{rounded(measured[end])} for skill {end + 1} (forecast: {rounded(forecast[end])})" for end in ends]
    unreached = "" if np.isfinite(measured).all() else "; ∞ means that not every network reaches half strength"
    return " and ".join(steps) + unreached
