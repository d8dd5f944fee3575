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

_OVER_WIDTH = functools.partial(Chart, over="width", log="x")


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
            "mean_centred_accuracy",
            title="Test accuracy without the initial output",
            y_label="test accuracy",
            caption="As above, but the output of the initial network is subtracted, in training and on test digits.",
        ),
        _OVER_WIDTH(
            "mean_feature_change",
            title="Change of the features",
            caption="Relative change of the activations of the hidden layer during training, over the width.",
        ),
    ]


def meaning(study: ParametrisationAccuracy, result: Comparison) -> str:
    """State the test accuracies at the base width and at the largest width."""
    base, *_, wide = result.observed["mean_test_accuracy"].transpose("width", "architecture")
    centred = result.observed["mean_centred_accuracy"].isel(width=-1)
    gaps = [
        sum(float(each.sel(architecture=rich) - each.sel(architecture=lazy)) for rich, lazy in PAIRS.items())
        for each in (wide, centred)
    ]
    source = (
        "Most of the difference in accuracy is therefore due to this random output, which training in the kernel phase "
        "does not remove on test digits."
        if abs(gaps[1]) < 0.5 * abs(gaps[0])
        else "This random output is therefore not the main cause of the difference in accuracy."
    )
    pairs = "; ".join(
        f"{percent(wide.sel(architecture=rich))} with {rich} and {percent(wide.sel(architecture=lazy))} with {lazy}"
        for rich, lazy in PAIRS.items()
    )
    return (
        f"Two-layer ReLU networks were trained on {study.samples} handwritten digits until the training loss was "
        f"{rounded(study.final_loss)} of that of the zero function. A parametrisation states how initial weights, "
        f"output multiplier and learning rates change with the width. At the base width, {study.widths[0]}, all "
        f"parametrisations are the same network, with a test accuracy of {percent(base[0])}. At the width "
        f"{study.widths[-1]}, the test accuracies were {pairs}. In each pair, the first parametrisation learns "
        "features in the limit of infinite width, and the tangent kernel of the second is constant, so that it learns "
        "no features. Networks were also trained and tested after the output of the initial network was subtracted. "
        f"At the width {study.widths[-1]}, their mean test accuracies were between {percent(centred.min())} and "
        f"{percent(centred.max())}. {source}"
    )
