"""Figures and text of the study `deep-saddles`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.linear_networks.deep_saddles.study import DeepSaddles

__all__ = ["figures", "meaning"]


def figures(study: DeepSaddles, result: Comparison) -> list[Chart]:
    """The figures: loss and rank of random networks, exponents of the initial NTK, and modes of aligned layers."""
    return [
        Chart(
            "random_loss",
            log="x",
            title="Loss of random networks",
            caption="Loss of networks with random initial weights, for several scales width^(−γ/2) of the weights. "
            "With smaller weights, the plateaus become longer compared with the drops between them.",
        ),
        Chart(
            "random_learned_rank",
            log="x",
            title="Learned rank of random networks",
            caption="Number of target modes that the same networks have learned, Σ sᵢ/σᵢ. On a plateau at rank k, the "
            "network is near a saddle: the best linear map of rank k.",
            y_label="learned modes",
        ),
        Chart(
            "kernel_exponent",
            over="exponent",
            error="kernel_exponent_error",
            title="Width exponent of the initial NTK",
            caption="Power of the width with which the initial NTK grows, against γ, for weights of variance width^−γ. "
            "If this power is positive, wide networks learn lazily. If it is negative, the NTK of wide networks "
            "vanishes, and they start near the saddle at the origin.",
            points=True,
        ),
        Chart(
            "mode_strength",
            log="x",
            title="Modes of aligned layers",
            caption="Strength of each mode if all layers are aligned at initialisation. Theory gives these curves in "
            "closed form.",
        ),
    ]


def meaning(study: DeepSaddles, result: Comparison) -> str:
    """Summarise the plateaus and the escape time of random networks, with their predictions."""
    seen, predicted = result.observed, result.predicted
    plateaus, best = seen["plateau_loss"], predicted["plateau_loss"]
    return (
        f"Linear networks of {study.depth} layers were trained from random weights of variance width^−γ, and the NTKs "
        "of many more were measured at initialisation. Theory puts the transition from lazy to saddle-to-saddle "
        "learning at γ = 1. In the network with the smallest weights, the loss on successive plateaus goes from "
        f"{rounded(plateaus[0])} to {rounded(plateaus[-1])}; the best linear maps of rank 0 to {len(best) - 1} have "
        f"losses from {rounded(best[0])} to {rounded(best[-1])}. With smaller initial weights, the first jump comes "
        f"later. This time grows with a slope of {rounded(seen['escape_slope'])} times the leading-order slope "
        f"(predicted: {rounded(predicted['escape_slope'])}). The paper conjectures that random networks visit these "
        "saddles in turn; this study tests the conjecture for one network and one target."
    )
