"""Figures and text of the study `agf-optimizer`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.staircases.agf_optimizer.study import AgfOptimizer

__all__ = ["figures", "meaning"]


def figures(study: AgfOptimizer, result: Comparison) -> list[Chart]:
    """The figures: losses of ReLU and of linear networks, and the growth rate of the next linear neuron."""
    return [
        Chart(
            ("relu_loss", "sgd_loss", "adam_loss"),
            over="neuron",
            title="Loss of ReLU networks",
            caption="Final loss against the number of ReLU neurons. The active-set method adds the neurons one at a "
            "time; SGD and Adam train all neurons at once. For SGD and Adam, the figure shows the lowest loss over "
            f"three learning rates and {study.seeds} initialisations. This comparison does not affect the verdict.",
            words=("active set", "SGD", "Adam"),
            y_label="loss",
        ),
        Chart(
            "loss",
            over="neuron",
            title="Loss of linear networks",
            caption="Loss against the number of linear neurons. Theory predicts that the loss equals that of the best "
            "linear map of the same rank.",
            points=True,
        ),
        Chart(
            "growth_rate",
            over="neuron",
            title="Growth rate of the next linear neuron",
            caption="Utility of the next neuron, which equals its growth rate while the neuron is small. The method "
            "stops when the utility is zero, because further linear neurons cannot lower the loss.",
            points=True,
        ),
    ]


def meaning(study: AgfOptimizer, result: Comparison) -> str:
    """Summarise the method, the losses of linear and ReLU neurons, and the mean losses of the optimisers."""
    predicted, observed = result.predicted["loss"], result.observed
    linear = observed["loss"]
    return (
        "The active-set method adds neurons one at a time, each in the direction of fastest growth, and minimises the "
        f"loss after each addition. For linear neurons, theory predicts a loss of {rounded(predicted[0])} with one "
        f"neuron and of {rounded(predicted[-1])} with {study.neurons} neurons; the method reached {rounded(linear[0])} "
        f"and {rounded(linear[-1])}. For ReLU neurons, theory provides a lower bound on the decrease in the loss "
        f"due to each neuron. The smallest decrease was {percent(observed['guarantee'].min())} of its bound (larger "
        f"values count as 100 %). The loss of ReLU networks, averaged over 1 to {study.neurons} neurons, was "
        f"{rounded(observed['relu_loss'].mean())} with this method, {rounded(observed['sgd_loss'].mean())} with SGD "
        f"and {rounded(observed['adam_loss'].mean())} with Adam. These losses are for one data "
        f"set of {study.samples} samples."
    )
