"""Figures and text of the study `wide-linear`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.linear_networks.wide_linear.study import WideLinear

__all__ = ["figures", "meaning"]


def figures(study: WideLinear, result: Comparison) -> list[Chart]:
    """The figures: the change in the NTK, the loss, and the drift of the conserved trace in discrete steps."""
    return [
        Chart(
            "kernel_change",
            residual=True,
            title="Change in the NTK",
            caption="Change in the NTK, relative to its initial norm, for larger weights in the second layer (δ > 0) "
            "or in the first layer (δ < 0). One equation predicts both curves. The lower panel shows training minus "
            "theory.",
        ),
        Chart("loss", log="y", title="Loss", caption="Loss over time for each imbalance δ."),
        Chart(
            "step_drift",
            over="learning_rate",
            title="Drift of the conserved quantity",
            caption="Change in tr Δ during gradient descent with two step sizes, where Δ = η₁AAᵀ − η₂WᵀW is the "
            "imbalance matrix. Gradient flow conserves Δ; to first order, discrete steps change its trace in "
            "proportion to the step size.",
            x_label="step size",
            y_label="change in tr Δ",
            points=True,
        ),
    ]


def meaning(study: WideLinear, result: Comparison) -> str:
    """Explain why one equation describes both signs of the imbalance, with the error of its solution."""
    imbalance, error = rounded(study.imbalance), rounded(result.quantities["coefficients"].error)
    return (
        f"Two linear networks with {study.inputs} inputs and {study.outputs} outputs start from the same linear map. "
        f"One has larger weights in the second layer (δ = {imbalance}) and one hidden neuron for each output; the "
        f"other has larger weights in the first layer (δ = −{imbalance}) and one hidden neuron for each input. The "
        "theory predicts that both maps obey the same equation, which depends on δ only through δ². The trained maps "
        f"agree with the solution of this equation to a relative error of {error}. According to the equation, it does "
        "not matter which layer has the larger weights, unlike in a single neuron. The theory holds for isotropic "
        "layers of these widths. Discrete steps violate the conservation law of gradient flow, by an amount "
        "proportional to the step size."
    )
