"""Figures and text of the study `grokking-diagonal`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.grokking.grokking_diagonal.study import GrokkingDiagonal

__all__ = ["figures", "meaning"]

_CHART_OF_TIMES = functools.partial(Chart, x_label="training time")


def figures(study: GrokkingDiagonal, result: Comparison) -> list[Chart]:
    """The test error, the training loss, the grokking times and the products of the weights."""
    theory = result.predicted.attrs
    decay = rounded(study.weight_decay)
    return [
        _CHART_OF_TIMES(
            "test_error",
            log="x",
            title="Test error",
            caption="Test error relative to the mean square of the targets, for initial weights of each size α. The "
            "prediction (dashed) starts when all networks have fitted the samples.",
        ),
        _CHART_OF_TIMES(
            "loss",
            log="xy",
            title="Training loss",
            y_label="training loss",
            caption=f"Loss on the {study.samples} training samples. According to theory, all networks have fitted them "
            f"by time {rounded(theory['fitting_time'])}. Weight decay keeps the loss above zero after that.",
        ),
        Chart(
            "grokking_time",
            over="scale",
            log="x",
            title="Grokking time",
            x_label="size of the initial weights α",
            caption=f"Time at which the test error falls below {rounded(study.threshold)}. The predicted time grows by "
            f"1/λ = {rounded(1 / study.weight_decay)} for every factor e in α, a straight line on this axis.",
            points=True,
        ),
        _CHART_OF_TIMES(
            "weight_product",
            log="y",
            title="Product of paired weights",
            caption="Mean product of the paired weights u and v. Whatever the data, weight decay shrinks it at the "
            f"rate 2λ with λ = {decay}, a straight line on this axis. The network is predicted to generalise a time "
            f"{rounded(theory['grokking_lag'])} after the product has fallen to {rounded(theory['critical_product'])}; "
            "both numbers depend on the data alone.",
        ),
    ]


def meaning(study: GrokkingDiagonal, result: Comparison) -> str:
    """The grokking times in training and in theory."""
    observed, predicted = (side["grokking_time"] for side in (result.observed, result.predicted))
    times = " ".join(
        f"From initial weights of size {rounded(scale)}, it does so at time {rounded(observed.sel(scale=scale))}; the "
        f"prediction is {rounded(predicted.sel(scale=scale))}."
        for scale in dict.fromkeys((study.scales[0], study.scales[-1]))
    )
    fitted = rounded(result.predicted.attrs["fitting_time"])
    return (
        f"A diagonal linear network with weight decay {rounded(study.weight_decay)} is trained on {study.samples} "
        f"samples of a target that depends on {study.relevant} of {study.inputs} inputs. According to theory, it has "
        f"fitted the samples by time {fitted}. It generalises when its relative test error falls below "
        f"{rounded(study.threshold)}. {times} The predicted times follow from the data, the initial weights and the "
        "weight decay, without training: the network first fits the samples with nearly the smallest ℓ2 norm, and "
        "weight decay then moves it slowly, at a known rate, towards the fit with the smallest ℓ1 norm, which uses few "
        "inputs. The prediction holds for this kind of network in the limit where weight decay is much slower than "
        "fitting."
    )
