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
    """The figures: test accuracy, and the norm before and after training, over the scale."""
    return [
        _OVER_SCALE(
            ("mean_test_accuracy", "mean_centred_accuracy"),
            log="x",
            words=("output", "output minus initial output"),
            y_label="test accuracy",
            title="Test accuracy",
            caption="Accuracy on test digits after training to the same training loss, over the scale of the initial "
            f"weights; mean over {study.seeds} networks. A random guess has an accuracy of 0.1. For the second line, "
            "the output of the initial network is subtracted, in training and on test digits.",
        ),
        _OVER_SCALE(
            ("mean_norm", "mean_initial_norm"),
            log="xy",
            words=("after training", "before training"),
            y_label="norm of the weights",
            title="Norm of the weights",
            caption="Norm of all weights before and after training, over the scale of the initial weights; mean over "
            f"{study.seeds} networks.",
        ),
    ]


def meaning(study: FinalNorm, result: Comparison) -> str:
    """State the norms and the accuracies at the smallest and the largest scale."""
    whole, centred = (result.observed[f"mean_{name}_accuracy"] for name in ("test", "centred"))
    part = float(centred[0] - centred[-1]) / float(whole[0] - whole[-1])
    source = (
        "Most of the loss of accuracy is therefore due to the random output of the initial network, which training "
        "does not remove on test digits."
        if abs(part) < 0.5
        else "The random output of the initial network is therefore not the main cause of the difference."
    )
    ends = [result.observed.isel(scale=place) for place in (0, -1)]
    small, large = (
        f"the norm was {rounded(each['mean_norm'])} after training and {rounded(each['mean_initial_norm'])} before, "
        f"and the test accuracy was {percent(each['mean_test_accuracy'])}"
        for each in ends
    )
    least = float(result.observed["accuracy"].min())
    fitted = "every training digit" if least == 1 else f"at least {percent(least)} of its training digits"
    return (
        f"Two-layer ReLU networks with {study.width} neurons were trained on {study.samples} handwritten digits until "
        f"the training loss was {rounded(study.final_loss)} of that of the zero function. Each network then "
        f"classified {fitted} correctly. At the scale {rounded(study.scales[0])} of the initial weights, "
        f"{small}. At the scale {rounded(study.scales[-1])}, {large}. All networks solve the same task to the same "
        "loss, so the scale determines which solution training finds. Networks were also trained and tested after the "
        f"output of the initial network was subtracted. Their test accuracy was {percent(centred[0])} at the smallest "
        f"and {percent(centred[-1])} at the largest scale. {source}"
    )
