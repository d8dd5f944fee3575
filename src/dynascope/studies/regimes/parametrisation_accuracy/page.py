"""Figures and text of the study `parametrisation-accuracy`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded
from dynascope.studies.regimes.parametrisation_accuracy.claims import PAIRS

if TYPE_CHECKING:
    from dynascope.studies.regimes.parametrisation_accuracy.study import ParametrisationAccuracy

__all__ = ["figures", "meaning"]

_OVER_WIDTH = functools.partial(Chart, over="width", log="x", symbols={"architecture": ""})


def figures(study: ParametrisationAccuracy, result: Comparison) -> list[Chart]:
    """The figures: test accuracy and change of the features over the width."""
    return [
        _OVER_WIDTH(
            "mean_test_accuracy",
            title="Test accuracy",
            caption="Accuracy on test digits after training to the same training loss, over the width, with one line "
            f"for each parametrisation; mean over {study.seeds} networks. All parametrisations coincide at the "
            f"smallest width, {study.widths[0]}. Mean field and Xavier+ are the same network.",
        ),
        _OVER_WIDTH(
            "mean_feature_change",
            title="Change of the features",
            caption="Relative change of the activations of the hidden layer during training, over the width. The "
            "features of Xavier− change because its initial outputs are large and have to be unlearned.",
        ),
    ]


def meaning(study: ParametrisationAccuracy, result: Comparison) -> str:
    """State the test accuracies at the base width and at the largest width."""
    base, *_, wide = result.observed["mean_test_accuracy"].transpose("width", "architecture")
    pairs = "; ".join(
        f"{percent(wide.sel(architecture=rich))} with {rich} and {percent(wide.sel(architecture=lazy))} with {lazy}"
        for rich, lazy in PAIRS.items()
    )
    return (
        f"Two-layer ReLU networks were trained on {study.samples} handwritten digits until the training loss was "
        f"{rounded(study.final_loss)} of that of the zero function. At the base width, {study.widths[0]}, all "
        f"parametrisations are the same network, with a test accuracy of {percent(base[0])}. At the width "
        f"{study.widths[-1]}, the test accuracies were {pairs}. In each pair, the first parametrisation learns "
        "features in the limit of infinite width, and the kernel of the second is constant. These networks have no "
        "normalisation layers, which would turn the scales of their layers into learning rates."
    )
