"""Figures and text of the study `modified-flow`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.symmetry.modified_flow.study import ModifiedFlow

__all__ = ["figures", "meaning"]


def figures(study: ModifiedFlow, result: Comparison) -> list[Chart]:
    """The distances from the flows, their orders, the predicted distance, and the loss."""
    higher = (
        " With momentum, the modified flow starts from a higher loss, because it starts at the shifted initial point."
        if study.momentum > 0
        else ""
    )
    return [
        Chart(
            "distance",
            over="learning_rate",
            log="xy",
            title="Final distance from each flow",
            y_label="distance of the final weights",
            caption="Distance of the final weights from the end of each flow. The slopes of the lines are the orders "
            "in the next figure. At order 1, a learning rate ten times smaller reduces the distance by a factor of 10; "
            "at order 2, by a factor of 100.",
        ),
        Chart(
            "order",
            over="run",
            title="Order in the learning rate",
            x_label="flow",
            y_label="order p of the distance, ∝ ηᵖ",
            caption="Exponent with which each distance vanishes with the learning rate, extrapolated to small learning "
            "rates. The dashes show the theory.",
            points=True,
        ),
        Chart(
            "straying",
            over="learning_rate",
            log="xy",
            title="Predicted distance from gradient flow",
            y_label="distance from gradient flow",
            caption="Distance of the final weights from gradient flow. The dashed line shows the distance of the "
            "modified flow from gradient flow, which requires no training.",
            points=True,
        ),
        Chart(
            "loss",
            title="Loss at the largest learning rate",
            caption="Loss of gradient descent at the largest learning rate, and along the modified flow "
            f"(dashed).{higher}",
        ),
    ]


def meaning(study: ModifiedFlow, result: Comparison) -> str:
    """The distances at the smallest learning rate, and the orders of all three flows."""
    order, predicted = result.observed["order"], result.predicted["order"]
    distance = result.observed["distance"].isel(learning_rate=-1)
    plain, modified, shifted = "gradient flow", "modified flow", "modified flow, shifted start"
    initial = (
        " With momentum, the modified flow has to start at a shifted initial point, because the velocity of the steps "
        f"builds up from zero. From the initial weights its order is {rounded(order.sel(run=modified))}, and the "
        f"theory predicts {rounded(predicted.sel(run=modified))}."
        if study.momentum > 0
        else " Without momentum, the modified flow starts at the initial weights."
    )
    return (
        f"Gradient descent with momentum {rounded(study.momentum)} trained a small network {study.rates} times, each "
        "time with half the learning rate and twice the number of steps. At the smallest learning rate, "
        f"{rounded(distance['learning_rate'])}, the final weights were {rounded(distance.sel(run=plain))} away from "
        f"gradient flow, and {rounded(distance.sel(run=shifted))} away from the modified flow, which also descends the "
        "squared norm of the gradient. For small learning rates, the distance from gradient flow scales with the "
        f"learning rate to the power {rounded(order.sel(run=plain))}, and the distance from the modified flow with the "
        f"power {rounded(order.sel(run=shifted))}. The theory predicts {rounded(predicted.sel(run=plain))} and "
        f"{rounded(predicted.sel(run=shifted))}.{initial} These orders hold for learning rates far below the edge of "
        "stability, as in this study."
    )
