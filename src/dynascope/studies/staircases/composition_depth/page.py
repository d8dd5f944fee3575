"""Figures and text of the page of composition-depth."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        "width",
        over="length",
        log="y",
        title="Neurons that suffice, by construction",
        caption="Hidden neurons of the networks that are written down and give every answer. In one layer they "
        "multiply with each further element; a recurrent network and a tree use those for two again and again.",
        points=True,
    ),
    Chart(
        "depth",
        over="length",
        title="What it costs: layers in a row",
        caption="Nonlinear layers that follow each other: one, one for each further element, or the levels of a tree.",
        points=True,
    ),
    Chart(
        "trained_width",
        over="length",
        log="y",
        title="Neurons that training needs",
        caption="The smallest width, by doubling from {parameters.smallest_width}, at which the best of "
        "{parameters.seeds} trainings brings the loss to {parameters.target_loss} of its start; where none up to "
        "{parameters.largest_width} does, there is no point. The claim is that it at least doubles with each "
        "further element in one layer, and at most once in deeper networks.",
        points=True,
    ),
)

MEANING = (
    "Networks that combine k elements of the group {parameters.group} were written down from its representations, "
    "for k from 2 to {parameters.longest}, and tried on all sequences; the largest error of any answer leaves an "
    "exactness of {observed.exactness:least} (one is perfect). In a single layer the widest of them has "
    "{observed.width[architecture=two-layer]:most} neurons, against {observed.width[architecture=recurrent]:most} "
    "in a recurrent network and {observed.width[architecture=tree]:most} in a tree, which pay with up to "
    "{observed.depth[architecture=recurrent]:most} and {observed.depth[architecture=tree]:most} layers in a row. "
    "These widths suffice, and fewer may do. What networks need that start at random and are trained was found by "
    "doubling the width: up to {observed.trained_width[architecture=two-layer]:most} neurons in a single layer, "
    "{observed.trained_width[architecture=recurrent]:most} in a recurrent network and "
    "{observed.trained_width[architecture=tree]:most} in a tree. The verdict is on how these grow with k."
)
