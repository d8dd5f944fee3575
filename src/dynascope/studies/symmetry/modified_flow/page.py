"""Figures and text of the page of modified-flow."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        "distance",
        over="learning_rate",
        log="xy",
        title="How far steps end from each flow",
        y_label="distance of the weights at the end",
        caption="Ten times smaller steps should end ten times nearer to gradient flow, and a hundred times nearer "
        "to the modified flow from its shifted start: the slopes of the lines are the orders judged below.",
    ),
    Chart(
        "order",
        over="run",
        title="The order in the learning rate",
        x_label="flow",
        y_label="order p of the distance, ∝ ηᵖ",
        caption="The power of the learning rate with which each distance vanishes, extrapolated to small rates; "
        "dashes are what theory says.",
        points=True,
    ),
    Chart(
        "straying",
        over="learning_rate",
        log="xy",
        title="How far steps stray from gradient flow is foretold",
        y_label="distance from gradient flow",
        caption="Dashed is the distance of the modified flow from gradient flow, which is known without a step "
        "being made.",
        points=True,
    ),
    Chart(
        "loss",
        title="The loss at the largest rate",
        caption="The loss over the steps at the largest learning rate; dashed is the loss along the modified flow. "
        "With momentum it starts higher up, where the steps come from once they are at speed.",
    ),
)

MEANING = (
    "A small network was trained by steps with momentum {parameters.momentum}, each time at half the learning rate "
    "and for twice as many steps. At the smallest rate, {observed.learning_rate:last}, its weights ended "
    "{observed.distance[run=gradient flow]:last} away from gradient flow, and "
    "{observed.distance[run=modified flow, shifted start]:last} from the modified flow, which also goes down the "
    "slope of the gradient's size. As the rate goes to zero the first distance falls as the rate to the power "
    "{observed.order[run=gradient flow]}, the second as the rate to the power "
    "{observed.order[run=modified flow, shifted start]}; theory says 1 and 2, so that what steps add to the flow "
    "is itself known to first order. With momentum the flow must start where the steps come from once they are at "
    "speed; from the start of the weights its order is {observed.order[run=modified flow]}, and theory says "
    "{predicted.order[run=modified flow]}. This is of learning rates far below the edge of stability, as here."
)
