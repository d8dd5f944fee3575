"""Figures and text of the page of wide-linear."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        "kernel_change",
        residual=True,
        title="How far the tangent kernel moves",
        caption="Relative change of the tangent kernel, with the large layer second (δ > 0) or first (δ < 0). "
        "Theory has one equation for both; below: training less theory.",
    ),
    Chart("loss", log="y", title="The loss", caption="The loss over time for each imbalance."),
    Chart(
        "step_drift",
        over="learning_rate",
        title="What steps of finite size do",
        caption="Gradient flow keeps the imbalance; descent in steps changes its trace in proportion to the step.",
        x_label="size of a step",
        y_label="change of the trace",
        points=True,
    ),
)

MEANING = (
    "Two linear networks with {parameters.inputs} inputs and {parameters.outputs} outputs started with the same "
    "map, one with a large second layer (δ = {parameters.imbalance}), one with a first layer as large. Theory "
    "says that their functions follow one equation, in which only δ² appears, although they have other weights "
    "and other widths; from it the maps differ in training by {agreement.coefficients} of their size. Which layer "
    "is the larger would then make no difference, unlike in a single neuron. This is about layers that are "
    "isotropic and as wide as there are outputs or inputs; steps of finite size break what flow conserves, in "
    "proportion to the step."
)
