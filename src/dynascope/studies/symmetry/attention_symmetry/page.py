"""Figures and text of the study `attention-symmetry`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded
from dynascope.studies.symmetry.attention_symmetry.layers import PAIRS

if TYPE_CHECKING:
    from dynascope.studies.symmetry.attention_symmetry.study import AttentionSymmetry

__all__ = ["figures", "meaning"]


def figures(study: AttentionSymmetry, result: Comparison) -> list[Chart]:
    """The figures: numbers of charges, changes of charges, and distances between rotated runs."""
    return [
        Chart(
            "conserved_charges",
            "layer",
            "Number of independent combinations of charges that do not change during training, for each pair of "
            "weights, and the predicted number of symmetric generators.",
            title="Conserved charges",
            x_label="biases",
            y_label="conserved charges",
            points=True,
        ),
        Chart(
            ("outside", "inside"),
            "time",
            "Largest change of a charge outside the span of the biases, and largest change of the other charges, over "
            "time, relative to the squared norm of the initial weights. If a learned bias is added to a constant one, "
            "the charges contain the sum of both biases.",
            words=("outside the span of the biases", "inside"),
            log="y",
            title="Change of charges",
            y_label="relative change",
        ),
        Chart(
            "distance",
            "step",
            "Each optimiser trains from the initial weights and from the weights with rotated queries and keys. The "
            "figure shows the distance between the second run and the rotated first run, relative to the distance from "
            "the initial weights. If the optimiser commutes with rotations, this distance is a rounding error.",
            log="y",
            title="Optimisers and rotations",
            y_label="relative distance",
        ),
    ]


def meaning(study: AttentionSymmetry, result: Comparison) -> str:
    """Summarise the numbers of charges and the distances of the optimisers."""
    observed = result.observed
    counts = "; ".join(
        f"{name}: {int(observed['conserved_charges'].sel(layer=name, pair=PAIRS[0]))}" for name in study.biases
    )
    distances = observed["distance"].max("step")
    each = ", ".join(f"{rounded(distances.sel(optimizer=name))} for {name}" for name in study.optimizers)
    return (
        "The outputs of attention do not change if queries and keys are transformed by opposite matrices, or values "
        "and outputs. Gradient flow therefore conserves one charge for each symmetric matrix. A bias that is not "
        "learned singles out a direction and breaks the symmetries that move it. The numbers of charges of queries and "
        f"keys that training conserves are, by the kind of bias: {counts}. A learned bias compensates for a constant "
        "bias, but not for one that is drawn again for every batch. Optimisers that combine gradients by inner "
        "products commute with rotations, and preserve the symmetry; optimisers that rescale each weight separately do "
        f"not. The largest relative distances between rotated runs are {each}."
    )
