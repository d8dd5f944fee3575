"""Figures and text of the page of multi-index."""

from __future__ import annotations

from dynascope.results import Chart
from dynascope.studies import StaircaseStudy

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    *StaircaseStudy.figures,
    Chart(
        "index_strength",
        title="What is known of each direction",
        caption="What the network has along each hidden direction, in the order in which the study names their "
        "strengths; once all is learned it is that strength. A direction learned first is corrected when "
        "the next is found.",
    ),
)

MEANING = (
    "The target is a sum of powers z^k, k = {parameters.degree}, of the inputs along hidden directions in "
    "{parameters.dimension} dimensions; a network with {parameters.width} neurons of the same power was trained "
    "on the exact mean over Gaussian inputs, from weights {parameters.scale} times as large as usual. Theory "
    "({parameters.theory}) tells which direction is learned next, and when. It puts the first jump at "
    "{predicted.jump_time:first} and the last at {predicted.jump_time:last}; in training they came at "
    "{residual.observed_jump_time:first} and {residual.observed_jump_time:last}; the order is in the table below. "
    "This goes beyond the paper, which has no such model, and it holds in the clock in which each neuron's rate "
    "is scaled by its size."
)
