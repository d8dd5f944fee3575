"""Figures and text of the study `scaling-compute`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded
from dynascope.studies.scaling.skill_simulation import exponent_chart, fitted_exponents, law_chart

if TYPE_CHECKING:
    from dynascope.studies.scaling.scaling_compute.study import ScalingCompute

__all__ = ["figures", "meaning"]


def figures(study: ScalingCompute, result: Comparison) -> list[Chart]:
    """The least loss, the losses of all models, the best size and the fitted exponents."""
    return [
        law_chart(
            "compute",
            "Lowest loss of any model for a given compute budget, the number of neurons times the training time.",
            result,
            points=True,
        ),
        Chart(
            "model_loss",
            "neurons",
            "Loss of models of all sizes, each trained for as long as the budget C allows; one curve per budget, for "
            f"α = {rounded(study.exponents[0])}. Small models lack neurons for the rarer skills, and large ones lack "
            "time. The best size lies between.",
            log="xy",
            places={"exponent": (0,), "compute": (0, 1, 2, 3, 4, 5, -1)},
            symbols={"compute": "C"},
            title="Loss over model size at fixed compute",
        ),
        Chart(
            "optimal_neurons",
            "compute",
            "Number of neurons of the best model for each budget. Theory predicts growth as C^(1/(α + 2)), so that a "
            f"larger budget goes mostly into longer training. The fitted exponent is {_growth(result)}.",
            log="xy",
            title="Best model size",
            points=True,
        ),
        exponent_chart("α/(α + 2)"),
    ]


def meaning(study: ScalingCompute, result: Comparison) -> str:
    """How the least loss and the best size depend on compute."""
    return (
        f"Models of {study.fewest_neurons} to {study.most_neurons} neurons learn infinitely many skills; the frequency "
        "of skill k is proportional to 1/k¹⁺ᵅ. A budget C of neurons times steps sets how long each model trains. "
        "Theory predicts that the lowest loss for a budget falls as C^(−α/(α + 2)). The fitted exponent is "
        f"{fitted_exponents(result)}. The best number of neurons is predicted to grow as C^(1/(α + 2)), more slowly "
        f"than the best training time. The fitted exponent of this growth is {_growth(result)}. In these models every "
        "skill has a neuron of its own, and the skills do not interfere with each other."
    )


def _growth(result: Comparison) -> str:
    """The fitted and predicted exponents of the best size, as part of a sentence."""
    fitted, predicted = (side["neurons_exponent"] for side in (result.observed, result.predicted))
    return " and ".join(_with_theory(fitted[end], predicted[end]) for end in dict.fromkeys((0, fitted.size - 1)))


def _with_theory(fitted: xr.DataArray, predicted: xr.DataArray) -> str:
    return f"{rounded(fitted)} for α = {rounded(fitted['exponent'])} (theory: {rounded(predicted)})"
