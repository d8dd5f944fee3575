"""Figures and text of the study `scalar-network`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.regimes.scalar_network.study import ScalarNetwork

__all__ = ["figures", "meaning"]


def figures(study: ScalarNetwork, result: Comparison) -> list[Chart]:
    """The figures: final growth for each scaled quantity, growth over time, and learned part of the target."""
    error = rounded(result.quantities["log_growth_maximum"].error)
    return [
        Chart(
            "final_log_growth",
            over="dial",
            title="Final growth of the weights under four scalings",
            caption="Growth ln γ of the weights at the end of training. In each column, a factor c scales one "
            "quantity: the target is multiplied by c, the output or the input is divided by c, or the weights are "
            "divided by √c. Points of the same colour are at the same height if all four scalings have the same "
            "effect.",
            x_label="scaled quantity",
        ),
        Chart(
            "log_growth",
            over="time",
            places={"dial": (0,)},
            residual=True,
            title="Growth of the weights over time",
            caption="Growth ln γ over time when the target is scaled. Theory predicts the same curves for the other "
            "scalings, because the learning rates compensate for their different time scales. The lower panel shows "
            f"training minus theory. For all four scalings, training and theory differ by at most {error} of the "
            "largest growth.",
        ),
        Chart(
            "learned_fraction",
            over="time",
            places={"dial": (-1,)},
            title="Learned part of the target",
            caption="Learned part of the target when the weights are scaled. The unit of time is the time constant of "
            "the final approach to the target. Rich networks (large c) leave their initialisation slowly; lazy ones "
            "(small c) approach the target from the beginning. A curve starts below zero if the initial slope has the "
            "wrong sign.",
        ),
    ]


def meaning(study: ScalarNetwork, result: Comparison) -> str:
    """Summarise the growth of the weights at the first and the last factor, over all scalings."""
    growth, predicted = (side["final_log_growth"] for side in (result.observed, result.predicted))

    def of(place: int) -> str:
        seen, expected = (side.isel(scaling_parameter=place) for side in (growth, predicted))
        least, most = rounded(seen.min()), rounded(seen.max())
        measured = least if least == most else f"{least} to {most}"
        return (
            f"{measured} at c = {rounded(study.factors[place])} for all four scalings (predicted: "
            f"{rounded(expected.mean())})"
        )

    ends = of(0) if len(study.factors) == 1 else f"{of(0)}, and {of(-1)}"
    return (
        f"A network with one input and {study.neurons} linear hidden neurons learns the slope of a line. A factor c "
        "scales one of four quantities: the target, the output, the input or the initial weights. The logarithmic "
        "growth of the weights during training, ln γ, measures how rich learning is: it is near zero in a lazy network "
        f"and large in a rich one. In training, ln γ is {ends}. In this theory, a single number measures richness, and "
        "all four scalings change this number in the same way. In larger or nonlinear networks, the four scalings need "
        "not be equivalent."
    )
