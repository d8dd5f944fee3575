"""Figures and text of the page of single-neuron."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        "coefficient_across_target",
        over="coefficient_along_target",
        title="The path from the start to the target",
        caption="The map of the neuron, along the target to the right and across it upwards: one path for each "
        "imbalance δ of its layers. With a large output weight (δ > 0) the path is straight; with large input "
        "weights (δ < 0) the neuron first fits the size of its answer and then turns.",
    ),
    Chart(
        "kernel_change",
        log="x",
        title="How far learning changes the neuron's own response",
        caption="Change of the tangent kernel relative to its start. Where it stays small the neuron is as good as "
        "linear in its weights (lazy); where it is large the neuron has learned features (rich).",
    ),
    Chart(
        "loss",
        log="x",
        residual=True,
        title="The loss",
        caption="The loss over time for each imbalance; the panel below shows what is left between training "
        "and theory.",
    ),
)

MEANING = (
    "A neuron f(x) = a w·x was trained from one and the same function, a w, split differently between its two "
    "layers: by the imbalance δ = {parameters.imbalance}, by none, and by the opposite. Theory gives every path "
    "in closed form and calls the learning at this δ {predicted.regime:first}, at the opposite one "
    "{predicted.regime:last}. At the end the tangent kernel has changed by "
    "{observed.kernel_change[time=last]:least} times its size in the neuron that moves least, and by "
    "{observed.kernel_change[time=last]:most} times in the one that moves most. All start with one function, so "
    "that what differs is due to the shares of the layers; this neuron is linear, with {parameters.inputs} inputs."
)
