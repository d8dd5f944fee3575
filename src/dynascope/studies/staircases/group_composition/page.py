"""Figures and text of the study `group-composition`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded
from dynascope.studies import StaircaseStudy
from dynascope.studies.staircase_study import jump_times

if TYPE_CHECKING:
    from dynascope.studies.staircases.group_composition.study import GroupComposition

__all__ = ["figures", "meaning"]


def figures(study: GroupComposition, result: Comparison) -> list[Chart]:
    """The figures: the loss in total, and the loss in each irreducible representation."""
    return [
        *StaircaseStudy.figures(study, result),
        Chart(
            "irrep_loss",
            title="Loss in each irreducible representation",
            caption="Loss in each irreducible representation (irrep) of the group over time. The network has learned "
            "an irrep when the loss in this irrep has fallen to zero.",
        ),
    ]


def meaning(study: GroupComposition, result: Comparison) -> str:
    """Summarise the task, the order of the irreps, the times of the first and last jumps, and the conditions."""
    return (
        f"A two-layer network, whose neurons initially have norm {rounded(study.scale)}, was trained to compute the "
        f"product of {study.sequence_length} elements of the group {study.group} from their vector encodings. An "
        "encoding is a sum of components in the irreducible representations (irreps) of the group, which generalise "
        "the frequencies of a Fourier series. Theory predicts that the irreps are learned in order of their maximal "
        f"utility, which determines the growth rate of a small neuron tuned to one irrep. {jump_times(result)} Three "
        "choices keep the jumps separate. The default encoding separates the times at which the irreps are learned. "
        "Each neuron is initialised near one irrep. The flow is homogeneity-normalised: the learning rate of a neuron "
        "depends on its norm."
    )
