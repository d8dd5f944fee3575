"""Figures and text of the study `relu-alignment`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded
from dynascope.studies import StaircaseStudy
from dynascope.studies.staircase_study import jump_times

if TYPE_CHECKING:
    from dynascope.studies.staircases.relu_alignment.study import ReluAlignment

__all__ = ["figures", "meaning"]


def figures(study: ReluAlignment, result: Comparison) -> list[Chart]:
    """The figures: directions and sizes of the neurons in the plane, or the loss staircase."""
    if study.data != "plane":
        return StaircaseStudy.figures(study, result)
    return [
        Chart(
            "angle",
            title="Directions of the neurons",
            caption="Angle of the input weights of each neuron over time, in degrees. Theory predicts that the neurons "
            "rotate towards a few extremal directions, which depend only on the data.",
        ),
        Chart(
            "growth",
            title="Growth of the neurons",
            caption="Logarithm of the norm of each neuron, relative to its initial norm. Neurons can grow along some "
            "extremal directions and shrink along others.",
        ),
    ]


def meaning(study: ReluAlignment, result: Comparison) -> str:
    """Summarise the alignment of the neurons in the plane, or the jumps of the loss staircase."""
    network = f"A ReLU network with {study.width} neurons was trained"
    if study.data == "plane":
        loss = result.observed["loss"]
        return (
            f"{network} on {study.samples} points in the plane from initial weights scaled by {rounded(study.scale)}. "
            f"The loss was {rounded(loss[0])} at t = 0 and {rounded(loss[-1])} at the end, when the largest neuron was "
            "predicted to reach a norm of 0.001. While all neurons are small, each rotates along its own path towards "
            "one of a few extremal directions. Theory predicts these paths from the data and the initial weights. The "
            f"study compares the paths of {result.observed.sizes['neuron']} neurons; neurons that are predicted to "
            "shrink more than twentyfold are excluded. The largest error in a component of the unit direction vectors "
            f"is {rounded(result.quantities['direction_maximum'].error)}."
        )
    kind = (
        "With orthogonal inputs, theory predicts one jump for the positive targets and one for the negative targets if "
        "each sign has a neuron that is initially active on all its data. Otherwise, there are further, smaller jumps, "
        "or some targets are never learned."
        if study.data == "orthogonal"
        else "On general data, neurons that have grown keep rotating, and the predicted times after the first jump are "
        "estimates."
    )
    return (
        f"{network} on {study.data} data from initial weights scaled by {rounded(study.scale)}. Theory predicts that "
        "its neurons first align with a few directions; neurons along one of them then grow until the loss drops. "
        f"{jump_times(result)} {kind}"
    )
