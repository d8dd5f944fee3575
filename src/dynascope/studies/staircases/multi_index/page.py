"""Figures and text of the study `multi-index`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded
from dynascope.studies import StaircaseStudy
from dynascope.studies.staircase_study import jump_times

if TYPE_CHECKING:
    from dynascope.studies.staircases.multi_index.study import MultiIndexStaircase

__all__ = ["figures", "meaning"]


def figures(study: MultiIndexStaircase, result: Comparison) -> list[Chart]:
    """The figures: the loss, and the learned strength of each direction."""
    return [
        *StaircaseStudy.figures(study, result),
        Chart(
            "index_strength",
            title="Learned strength of each direction",
            caption="Strength of the network along each hidden direction over time. The directions are numbered as in "
            "the field `strengths`. If the network learns the target exactly, the curves end at the values of this "
            "field. The strength of an earlier direction can change when the network learns a later one.",
        ),
    ]


def meaning(study: MultiIndexStaircase, result: Comparison) -> str:
    """Summarise the task, the theory, the times of the first and last jumps, and the limits of the claim."""
    theory = (
        "Alternating gradient flow predicts from the initial weights which direction is learned next, and when."
        if study.theory == "alternating-flow"
        else "A closed form predicts from the strengths which direction is learned next, and when."
    )
    return (
        f"The target is a weighted sum over {len(study.strengths)} hidden directions in {study.dimension} dimensions. "
        f"Each term is z^{study.degree}, where z is the projection of the input onto a direction. A two-layer "
        f"network with {study.width} neurons and the activation z^{study.degree} was trained on the exact expectation "
        f"of the loss over Gaussian inputs, from initial weights scaled by {rounded(study.scale)}. {theory} "
        f"{jump_times(result)} The table of jumps lists the "
        "order in which directions are learned. The paper does not treat this model. The prediction holds for the "
        "homogeneity-normalised flow, in which the learning rate of a neuron depends on its norm."
    )
