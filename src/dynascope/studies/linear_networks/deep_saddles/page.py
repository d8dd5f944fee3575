"""Figures and text of the study `deep-saddles`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

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
            "With smaller weights, the plateaus become longer relative to the drops between them.",
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
            caption="Exponent with which the initial NTK scales with the width, against γ, for weights of variance "
            "width^−γ. If the exponent is positive, the theory predicts that wide networks learn lazily, which is not "
            "tested here. If the exponent is negative, the NTK of wide networks vanishes, and these networks start "
            "near the saddle at the origin.",
            points=True,
        ),
        Chart(
            "mode_strength",
            log="x",
            title="Modes of aligned layers",
            caption="Strength of each mode if all layers are aligned at initialisation. The theory predicts these "
            "curves in closed form.",
        ),
    ]


def meaning(study: DeepSaddles, result: Comparison) -> str:
    """Summarise the plateaus and the escape time of random networks, with their predictions."""
    seen, predicted = result.observed, result.predicted
    exponent, loss, rank = (
        rounded(abs(seen[name] - predicted[name]).max()) for name in ("kernel_exponent", "plateau_loss", "plateau_rank")
    )
    slope = abs(seen["escape_slope"] / predicted["escape_slope"] - 1)
    losses, modes = predicted["plateau_loss"], len(study.singular_values)
    return (
        f"The NTKs of random networks with {_listed(study.depths)} layers and weights of variance width^−γ were "
        f"measured at initialisation. Their width exponents differ from the predicted ones by at most {exponent}; the "
        f"predicted exponent changes sign at γ = 1. Networks of {study.depth} layers were trained from small random "
        f"weights, with γ = {_listed(study.training_gammas)}. In the network with the smallest initial weights, the "
        f"losses on the plateaus differ by at most {loss} from those of the best linear maps of rank 0 to {modes - 1}, "
        f"which fall from {rounded(losses[0])} to {rounded(losses[-1])}. The learned ranks on the plateaus differ from "
        f"the integers 0 to {modes - 1} by at most {rank}. With smaller initial weights, the first jump occurs later; "
        f"the slope of the jump time differs from the leading-order prediction by {percent(slope)}. The paper "
        "conjectures that random networks visit the saddles at these maps in turn; this study tests the conjecture for "
        "one network and one target. The study tests neither lazy training for γ < 1 nor the effect of depth on the "
        "plateaus."
    )


def _listed(values: Sequence[float]) -> str:
    *others, last = map(rounded, values)
    return f"{', '.join(others)} and {last}" if others else last
