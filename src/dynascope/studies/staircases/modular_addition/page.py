"""Figures and text of the study `modular-addition`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded
from dynascope.studies import StaircaseStudy
from dynascope.studies.staircase_study import jump_times

if TYPE_CHECKING:
    from dynascope.studies.staircases.modular_addition.study import ModularAddition

__all__ = ["figures", "meaning"]


def figures(study: ModularAddition, result: Comparison) -> list[Chart]:
    """The figures: the loss in each frequency, and the total loss."""
    return [
        Chart(
            "frequency_loss",
            title="Loss in each frequency",
            caption="Loss in each frequency of the output over time. The network has learned a frequency when the loss "
            "in this frequency has fallen to zero.",
        ),
        *StaircaseStudy.figures(study, result),
    ]


def meaning(study: ModularAddition, result: Comparison) -> str:
    """Summarise the task, the prediction, the times of the first and last jumps, and the initial weights."""
    clock = (
        "The flow is homogeneity-normalised: the learning rate of a neuron is the inverse of its norm, so small "
        "neurons grow exponentially."
        if study.clock == "normalised"
        else "The flow is plain gradient flow, in which times grow as 1/scale."
    )
    return (
        f"A two-layer network with {study.width} quadratic neurons was trained to add two numbers modulo p = "
        f"{study.p}. Each number is encoded as a cyclic shift of a fixed vector, a sum of {len(study.frequencies)} "
        f"waves. All neurons initially have norm {rounded(study.scale)}. Theory predicts the loss on each plateau from "
        "the power of the frequencies that are not yet learned. The time of each jump follows from the maximal utility "
        f"of its frequency, which is proportional to the cube of the Fourier coefficient. {jump_times(result)} Each "
        "neuron is initialised near one frequency. From fully random weights, the strongest frequency would recruit "
        f"almost all neurons. {clock}"
    )
