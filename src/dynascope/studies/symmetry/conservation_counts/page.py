"""Figures and text of the study `conservation-counts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent

if TYPE_CHECKING:
    from dynascope.studies.symmetry.conservation_counts.study import ConservationCounts

__all__ = ["figures", "meaning"]


def figures(study: ConservationCounts, result: Comparison) -> list[Chart]:
    """The number of laws of the small networks and of the linear networks, and the charges after training."""
    moved = result.observed["moved"]
    return [
        Chart(
            ("laws", "bound"),
            "architecture",
            "Number of conservation laws of each network, counted from gradients, and the closed form. The other "
            "points show the upper bound from gradients at one point: the number of directions orthogonal to all of "
            "them. Where the bound is larger, training on different data in turn conserves fewer quantities than the "
            "gradients at one point suggest.",
            words=("conservation laws", "bound from one point"),
            title="Conservation laws of small networks",
            x_label="network",
            y_label="number",
            points=True,
        ),
        Chart(
            ("linear_laws", "linear_bound"),
            "run",
            "Number of conservation laws and upper bound from one point for two-layer linear networks of random sizes.",
            words=("conservation laws", "bound from one point"),
            title="Conservation laws of two-layer linear networks",
            x_label="inputs-hidden neurons-outputs",
            y_label="number",
            points=True,
        ),
        Chart(
            "final_charge",
            "charge",
            "Every charge after training, in the order of the networks in the first figure. Training moved the weights "
            f"by {percent(moved.min())} to {percent(moved.max())} of their initial norm. The predicted value is the "
            "charge before training. The charges include products of sums of weights, which are not counted as "
            "separate laws.",
            title="Charges after training",
            y_label="charge",
            points=True,
        ),
    ]


def meaning(study: ConservationCounts, result: Comparison) -> str:
    """How many laws there are, and why gradients at one point do not suffice to count them."""
    found = result.observed
    least, most = int(found["laws"].min()), int(found["laws"].max())
    small = f"{least}" if least == most else f"{least} to {most}"
    return (
        "A conservation law is a function of the weights that gradient flow never changes, whatever the data and the "
        "loss. The study counts the laws from gradients alone, without information about the architecture. The small "
        f"networks have {small} laws each, and the two-layer linear networks of random sizes have up to "
        f"{int(found['linear_laws'].max())}. Gradients at one point give only an upper bound, which reaches "
        f"{int(found['linear_bound'].max())} for the linear networks. Lie brackets of gradients, which describe "
        "training on several data sets in turn, give the exact number. The claims below test whether every law is one "
        "of the known charges, which are sums of squares, of products and of weights. The counts hold for gradient "
        "flow; steps of finite size move these quantities slightly."
    )
