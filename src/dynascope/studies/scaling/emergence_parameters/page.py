"""Figures and text of the page of emergence-parameters."""

from __future__ import annotations

from dynascope.results import Chart
from dynascope.studies.scaling.skill_needs import CLAIM_CHART, half_chart, strength_chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    strength_chart(
        "neurons",
        "How much of each skill networks of so many neurons have learned at the end of training, with standard "
        "errors over {parameters.runs} networks. Dashed is the forecast: it knows how many neurons networks need "
        "that learn one skill alone, and gives them to the most frequent skill first.",
    ),
    half_chart("neurons", "with"),
    CLAIM_CHART,
    Chart(
        "basis_strength",
        "neurons",
        "The model of the theory, in which a skill is made of {parameters.features} features and a neuron holds "
        "one: trained (points), and its exact law (dashed).",
        title="The model behind the forecast",
        points=True,
    ),
)

MEANING = (
    "Two-layer networks of few neurons are trained to the end on {parameters.skills} skills; a skill is a parity "
    "of some bits, and each is asked for less often than the one before. Theory says that neurons go to the most "
    "frequent skill until it is learned, then to the next, and takes from networks that learn one skill alone how "
    "many it needs. It forecasts half of the first skill with {predicted.half_neurons:first} neurons and half of "
    "the last with {predicted.half_neurons:last}; in the mean, networks had it with {observed.half_neurons:first} "
    "and {observed.half_neurons:last}. Single networks scatter widely: in up to "
    "{observed.out_of_order:most:percent} of those of one width a rarer skill was clearly stronger than a more "
    "frequent one. The verdict is on whether, in the mean, they learn every skill nearer "
    "to its own forecast than to that of another."
)
