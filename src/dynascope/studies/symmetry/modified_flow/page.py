"""Figures and text of the study `modified-flow`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.symmetry.modified_flow.study import ModifiedFlow

__all__ = ["figures", "meaning"]


def figures(study: ModifiedFlow, result: Comparison) -> list[Chart]:
    """The figures: distances from the flows, their orders, the predicted distance, and the loss."""
    higher = (
        " With momentum, the modified flow starts at a higher loss, at the shifted initial point."
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
            caption="Distance of the final weights from the end point of each flow, against the learning rate. The "
            "slopes are the orders in the next figure: reducing the learning rate tenfold reduces the distance by a "
            "factor of 10 at order 1 and by a factor of 100 at order 2.",
        ),
        Chart(
            "order",
            over="run",
            title="Order in the learning rate",
            x_label="flow",
            y_label="order p of the distance, ∝ ηᵖ",
            caption="Exponent p with which each distance scales as ηᵖ, extrapolated to small learning rates η, and the "
            "prediction (dashed).",
            points=True,
        ),
        Chart(
            "straying",
            over="learning_rate",
            log="xy",
            title="Predicted distance from gradient flow",
            y_label="distance from gradient flow",
            caption="Distance of the final weights from gradient flow, against the learning rate. The dashed line "
            "shows the distance of the modified flow from gradient flow, computed without training.",
            points=True,
        ),
        Chart(
            "loss",
            title="Loss at the largest learning rate",
            caption="Loss of gradient descent over time at the largest learning rate, and along the modified flow "
            f"(dashed).{higher}",
        ),
    ]


def meaning(study: ModifiedFlow, result: Comparison) -> str:
    """Summarise the distances at the smallest learning rate and the orders of all three flows."""
    order, predicted = result.observed["order"], result.predicted["order"]
    distance = result.observed["distance"].isel(learning_rate=-1)
    plain, modified, shifted = "gradient flow", "modified flow", "modified flow, shifted start"
    initial = (
        " With momentum, the modified flow must start at a shifted point, because the velocity builds up from zero. "
        f"If this flow starts from the initial weights, the order is {rounded(order.sel(run=modified))} (predicted: "
        f"{rounded(predicted.sel(run=modified))})."
        if study.momentum > 0
        else " Without momentum, the modified flow starts at the initial weights."
    )
    return (
        f"Gradient descent with momentum {rounded(study.momentum)} is run {study.rates} times, each time with half the "
        "previous learning rate and twice the previous number of steps. At the smallest learning rate, "
        f"{rounded(distance['learning_rate'])}, the distance of the final weights is "
        f"{rounded(distance.sel(run=plain))} from gradient flow and {rounded(distance.sel(run=shifted))} from the "
        "modified flow, which also penalises the squared gradient norm. At small learning rates η, these distances "
        f"scale as η to the power of {rounded(order.sel(run=plain))} and {rounded(order.sel(run=shifted))} (predicted: "
        f"{rounded(predicted.sel(run=plain))} and {rounded(predicted.sel(run=shifted))}).{initial} These orders hold "
        "only far below the edge of stability."
    )
