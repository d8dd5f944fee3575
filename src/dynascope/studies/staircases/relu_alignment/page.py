"""Figures and text of the page of relu-alignment."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        "angle",
        title="Many neurons, few directions",
        caption="The angle of the input weights of each neuron: from anywhere on the circle they turn to a few "
        "directions that the data fix.",
    ),
    Chart(
        "growth",
        title="Which neurons grow",
        caption="The logarithm of each neuron's size over its start. Along some directions neurons grow, and those "
        "will learn; along others they shrink.",
    ),
)

MEANING = (
    "A ReLU network with {parameters.width} neurons was trained on {parameters.samples} points in the plane from "
    "weights of {parameters.scale}. While all neurons are small the loss hardly moves ({observed.loss:first} at "
    "the start, {observed.loss:last} at the end); yet each neuron turns along a path of its own until it points "
    "in one of few directions, which theory computes from the data and the start of this neuron. Judged are the "
    "paths and the sizes of the neurons until the largest has reached a thousandth; the worst direction is off by "
    "{agreement.direction_maximum}. By theory what the network then learns is made of those directions alone, "
    "however many neurons it has; neurons that shrink far are left out."
)
