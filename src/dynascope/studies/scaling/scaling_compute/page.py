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
    """The figures: lowest loss, losses of all models, best size, and fitted exponents."""
    return [
        law_chart(
            "compute",
            "Lowest loss over all models against the compute budget, the number of neurons times the training time.",
            result,
            points=True,
        ),
        Chart(
            "model_loss",
            "neurons",
            f"Loss against model size at fixed compute, one curve per budget C, for α = {rounded(study.exponents[0])}. "
            "Small models lack neurons for rare skills, and large models lack training time, so an intermediate size "
            "is best.",
            log="xy",
            places={"exponent": (0,), "compute": (0, 1, 2, 3, 4, 5, -1)},
            symbols={"compute": "C"},
            title="Loss against model size at fixed compute",
        ),
        Chart(
            "optimal_neurons",
            "compute",
            "Number of neurons in the best model for each budget. Theory predicts growth as C^(1/(α + 2)), so most of "
            f"a larger budget should go into longer training. The fitted exponent is {_growth(result)}.",
            log="xy",
            title="Best model size",
            points=True,
        ),
        exponent_chart("α/(α + 2)"),
    ]


def meaning(study: ScalingCompute, result: Comparison) -> str:
    """Explain how the lowest loss and the best model size depend on compute."""
    return (
        f"Models of {study.fewest_neurons} to {study.most_neurons} neurons are trained on infinitely many skills with "
        "frequencies proportional to 1/k¹⁺ᵅ. A budget C fixes the number of neurons times the training "
        "time, so larger models train for a shorter time. Theory predicts that the lowest loss for a budget decays as "
        "C^(−α/(α + 2)); "
        f"the fitted exponent is {fitted_exponents(result)}. The best number of neurons is predicted to grow as "
        f"C^(1/(α + 2)), more slowly than the best training time; the fitted exponent is {_growth(result)}. In this "
        "model, every skill has a separate neuron, and skills do not interfere."
    )


def _growth(result: Comparison) -> str:
    """Describe the fitted and predicted exponents of the best size, as part of a sentence."""
    fitted, predicted = (side["neurons_exponent"] for side in (result.observed, result.predicted))
    return " and ".join(_with_theory(fitted[end], predicted[end]) for end in dict.fromkeys((0, fitted.size - 1)))


def _with_theory(fitted: xr.DataArray, predicted: xr.DataArray) -> str:
    return f"{rounded(fitted)} for α = {rounded(fitted['exponent'])} (theory: {rounded(predicted)})"
