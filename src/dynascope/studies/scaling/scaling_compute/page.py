"""Figures and text of the page of scaling-compute."""

from __future__ import annotations

from dynascope.results import Chart
from dynascope.studies.scaling.skill_simulation import FITTED, exponent_chart, law_chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    law_chart(
        "compute",
        "The least loss that any model reaches with a budget, its neurons times its training time.",
        points=True,
    ),
    Chart(
        "model_loss",
        "neurons",
        "The loss of models of all sizes, each trained as long as the budget allows, one curve for each budget "
        "and all for α = {observed.exponent:first}. Small models lack neurons, large ones lack time; the best "
        "one for a budget lies between.",
        log="xy",
        places={"exponent": (0,), "compute": (0, 1, 2, 3, 4, 5, -1)},
        symbols={"compute": "C"},
        title="Too small, or too briefly trained",
    ),
    Chart(
        "optimal_neurons",
        "compute",
        "The size of the best model for a budget. It grows as the budget to the power "
        "{observed.neurons_exponent:first} for α = {observed.exponent:first} and {observed.neurons_exponent:last} "
        "for α = {observed.exponent:last} (theory, 1/(α + 2): {predicted.neurons_exponent:first} and "
        "{predicted.neurons_exponent:last}); the rest of the budget goes into longer training.",
        log="xy",
        title="The best size",
        points=True,
    ),
    exponent_chart("α/(α + 2)"),
)

MEANING = (
    "Models of {parameters.fewest_neurons} to {parameters.most_neurons} neurons learn endlessly many skills, the "
    "k-th of which is asked for with a frequency in proportion to 1/k¹⁺ᵅ, each for the time that a budget of "
    "neurons times steps leaves it. The least loss for a budget falls with the fitted exponent "
    f"{FITTED}. The best model grows more slowly than the budget, with the powers "
    "{observed.neurons_exponent:first} and {observed.neurons_exponent:last} of it, so that of a larger budget more "
    "goes into longer training. All this is for models with a neuron for each skill, whose skills do not disturb "
    "each other."
)
