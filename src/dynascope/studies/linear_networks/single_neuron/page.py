"""Figures and text of the study `single-neuron`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.linear_networks.single_neuron.study import SingleNeuron

__all__ = ["figures", "meaning"]

_THRESHOLDS = (
    "A neuron is classified as lazy if this change is below 0.1. A neuron that is not lazy is delayed rich if "
    "δ ≤ −4 √(η_a η_w) and its map reaches half of the target after t = 10/|δ|; the remaining neurons are rich."
)


def figures(study: SingleNeuron, result: Comparison) -> list[Chart]:
    """The figures: the paths, the change in the NTK and the loss of the three neurons."""
    return [
        Chart(
            "coefficient_across_target",
            over="coefficient_along_target",
            title="Path from the initial map to the target",
            caption="Path of the neuron's map for each layer imbalance δ. The x-axis shows the component along the "
            "target, and the y-axis the component perpendicular to it. With a large output weight (δ > 0), the path is "
            "straight. With large input weights (δ < 0), the neuron first fits the norm of the target and then rotates "
            "towards the target.",
        ),
        Chart(
            "weight_along_target",
            over="output_weight",
            title="Path of the weights",
            caption="The same trajectories in weight space. The x-axis shows the output weight a, and the y-axis the "
            "component of the input weights w along the target.",
        ),
        Chart(
            "kernel_change",
            log="x",
            title="Change in the NTK",
            caption="Change in the NTK, relative to its initial norm. If this change stays below 0.1, the network "
            "function is approximately linear in the weights (lazy learning). If the change is large, the neuron "
            "learns features (rich learning). " + _regimes(result),
        ),
        Chart(
            "loss",
            log="x",
            residual=True,
            title="Loss",
            caption="Loss over time for each imbalance. The lower panel shows training minus theory.",
        ),
    ]


def meaning(study: SingleNeuron, result: Comparison) -> str:
    """Summarise the effect of the imbalance on the regime and on the change in the NTK."""
    change = result.observed["kernel_change"].isel(time=-1)
    if study.imbalance == 0:
        return (
            "The layers of this neuron f(x) = a w·x are balanced, δ = 0. The exact trajectory of the neuron is known, "
            f"and its regime follows from its initial weights. {_regimes(result)} By the end of training, the change "
            f"in the NTK is {rounded(change[0])} times its initial norm. {_THRESHOLDS} With a nonzero imbalance δ, the "
            "study shows neurons with δ, 0 and −δ, which start from the same function. This neuron is linear and its "
            f"inputs are {study.inputs}."
        )
    return (
        "All three neurons f(x) = a w·x compute the same function at t = 0. They differ only in how this function is "
        f"split between the two layers: the imbalances are δ = {rounded(study.imbalance)}, 0 and "
        f"{rounded(-study.imbalance)}. From the initial weights, the theory predicts the trajectory and the regime of "
        f"each neuron. {_regimes(result)} By the end of training, the change in the NTK ranges from "
        f"{rounded(change.min())} to {rounded(change.max())} times its initial norm. {_THRESHOLDS} With a different "
        "norm or alignment of the initial map, neurons with the same δ can learn in other regimes. The neurons "
        f"are linear and their inputs are {study.inputs}."
    )


def _regimes(result: Comparison) -> str:
    """State the predicted regime of each neuron, and the observed regime if it differs."""
    predicted, observed = result.predicted["regime"], result.observed["regime"].to_numpy()
    neurons = [
        f"{theory} for δ = {rounded(imbalance)}" + (f" (in training: {training})" if training != theory else "")
        for imbalance, theory, training in zip(
            predicted["imbalance"].to_numpy(), predicted.to_numpy(), observed, strict=True
        )
    ]
    *first, last = neurons
    return f"The predicted regimes are {', '.join(first)} and {last}." if first else f"The predicted regime is {last}."
