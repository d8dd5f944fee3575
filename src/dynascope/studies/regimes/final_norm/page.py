"""Figures and text of the study `final-norm`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.regimes.final_norm.study import FinalNorm

__all__ = ["figures", "meaning"]

_OVER_SCALE = functools.partial(Chart, over="scale")


def figures(study: FinalNorm, result: Comparison) -> list[Chart]:
    """The figures: test accuracy over the scale and over the final norm, and the norms over the scale."""
    return [
        _OVER_SCALE(
            "mean_test_accuracy",
            log="x",
            title="Test accuracy",
            caption="Accuracy on test digits over the scale of the initial weights, after training to the same "
            f"training loss; mean over {study.seeds} networks. All networks classify every training digit correctly.",
        ),
        _OVER_SCALE(
            "mean_norm",
            log="xy",
            title="Norm after training",
            caption="Norm of all weights after training, over the scale of the initial weights. From small initial "
            "weights, the norm grows to the size at which the network fits the digits.",
        ),
        _OVER_SCALE(
            "mean_initial_norm",
            log="xy",
            title="Norm before training",
            caption="Norm of all weights before training, for comparison.",
        ),
    ]


def meaning(study: FinalNorm, result: Comparison) -> str:
    """State the norms and the accuracies at the smallest and the largest scale."""
    ends = [result.observed.isel(scale=place) for place in (0, -1)]
    small, large = (
        f"the norm was {rounded(each['mean_norm'])} after training and {rounded(each['mean_initial_norm'])} before, "
        f"and the test accuracy was {percent(each['mean_test_accuracy'])}"
        for each in ends
    )
    return (
        f"Two-layer ReLU networks with {study.width} neurons were trained on {study.samples} handwritten digits until "
        f"the training loss was {rounded(study.final_loss)} of that of the zero function. At the scale "
        f"{rounded(study.scales[0])} of the initial weights, {small}. At the scale {rounded(study.scales[-1])}, "
        f"{large}. All networks fit the training digits, so the scale determines which of the fitting functions is "
        "found. The norm of the initial weights accounts for most of the norm after training at large scales."
    )
