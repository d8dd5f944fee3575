"""Figures and text of the study `conservation-counts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent

if TYPE_CHECKING:
    from dynascope.studies.symmetry.conservation_counts.study import ConservationCounts

__all__ = ["figures", "meaning"]


def figures(study: ConservationCounts, result: Comparison) -> list[Chart]:
    """The figures: numbers of laws of the small and of the linear networks, and charges after training."""
    moved = result.observed["moved"]
    return [
        Chart(
            ("laws", "bound"),
            "architecture",
            "Number of conservation laws of each network, computed from gradients and predicted by the closed form. "
            "The second set of points shows the upper bound from gradients at one point: the number of directions "
            "orthogonal to all of these gradients. If the bound is larger, sequential training on different data "
            "conserves fewer quantities than the gradients at one point suggest.",
            words=("conservation laws", "bound from one point"),
            title="Conservation laws of small networks",
            x_label="network",
            y_label="number of laws",
            points=True,
        ),
        Chart(
            ("linear_laws", "linear_bound"),
            "run",
            "Number of conservation laws of two-layer linear networks of random sizes, and the upper bound from "
            "gradients at one point.",
            words=("conservation laws", "bound from one point"),
            title="Conservation laws of two-layer linear networks",
            x_label="inputs-hidden neurons-outputs",
            y_label="number of laws",
            points=True,
        ),
        Chart(
            "final_charge",
            "charge",
            "Every charge after training, ordered by network as in the first figure; the prediction is the charge "
            f"before training. Training moved the weights by {percent(moved.min())} to {percent(moved.max())} of "
            "their initial norm. The charges include products of sums of weights; these products are not "
            "independent of the other charges.",
            title="Charges after training",
            y_label="charge",
            points=True,
        ),
    ]


def meaning(study: ConservationCounts, result: Comparison) -> str:
    """Summarise the numbers of laws, and explain why gradients at one point do not suffice to count them."""
    found = result.observed
    least, most = int(found["laws"].min()), int(found["laws"].max())
    small = f"{least}" if least == most else f"{least} to {most}"
    return (
        "A conservation law is a function of the weights that gradient flow never changes, whatever the data and the "
        "loss. Gradients alone, without information about the architecture, show that the small networks have "
        f"{small} laws each, and the two-layer linear networks up to {int(found['linear_laws'].max())}. Gradients at "
        f"one point give only an upper bound, which reaches {int(found['linear_bound'].max())} for the linear "
        "networks; Lie brackets of gradients, which describe sequential training on different data, yield the exact "
        "number. The claims test whether the known charges (sums of squares, of products or of weights) account for "
        "every law. Finite steps of gradient descent change these quantities slightly."
    )
