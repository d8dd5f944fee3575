"""Figures and text of the page of emergence-data."""

from __future__ import annotations

from dynascope.results import Chart
from dynascope.studies.scaling.skill_needs import CLAIM_CHART, half_chart, strength_chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    strength_chart(
        "samples",
        "How much of each skill networks have learned after training on so many samples, with standard errors "
        "over {parameters.runs} training sets. Dashed is the forecast: it knows how often each skill is asked "
        "for, and how many samples networks need that learn one skill alone.",
        log="x",
    ),
    half_chart("samples", "from", log="y"),
    CLAIM_CHART,
    Chart(
        "basis_strength",
        "samples",
        "The model of the theory, in which a skill is spread over {parameters.features} features that say nothing "
        "else: mean of {parameters.draws} training sets, and its exact law (dashed).",
        log="x",
        title="The model behind the forecast",
        points=True,
    ),
)

MEANING = (
    "Two-layer networks are trained to the end on fixed sets of samples, each of which asks for one of "
    "{parameters.skills} skills; a skill is a parity of some bits, and each is asked for less often than the one "
    "before. Theory says that a skill is learned in proportion to its samples, and takes from networks that learn "
    "one skill alone how many it needs. It forecasts half of the first skill from {predicted.half_samples:first} "
    "samples in all, and half of the last from {predicted.half_samples:last}; networks had it from "
    "{observed.half_samples:first} and {observed.half_samples:last}. In a network the samples of one skill "
    "disturb the others, of which the model knows nothing. The verdict is on whether networks learn every skill "
    "nearer to its own forecast than to that of another skill."
)
