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
    """The figures: test error, training loss, grokking times, and products of paired weights."""
    theory = result.predicted.attrs
    decay = rounded(study.weight_decay)
    return [
        _CHART_OF_TIMES(
            "test_error",
            log="x",
            title="Test error",
            caption="Test error over time, relative to the mean square of the targets, for each scale α of the initial "
            "weights. The prediction (dashed) begins when all networks have fitted the samples.",
        ),
        _CHART_OF_TIMES(
            "loss",
            log="xy",
            title="Training loss",
            y_label="training loss",
            caption=f"Loss on the {study.samples} training samples over time. The theory predicts that all networks "
            f"fit the samples by time {rounded(theory['fitting_time'])}; weight decay then keeps the loss above zero.",
        ),
        Chart(
            "grokking_time",
            over="scale",
            log="x",
            title="Grokking time",
            x_label="scale of the initial weights α",
            caption=f"Time at which the test error falls below {rounded(study.threshold)}, against the scale of the "
            "initial weights. The predicted time is linear in ln α with slope 1/λ = "
            f"{rounded(1 / study.weight_decay)}.",
            points=True,
        ),
        _CHART_OF_TIMES(
            "weight_product",
            log="y",
            title="Product of paired weights",
            caption="Mean product of the paired weights u and v over time. For any data, the mean decays exponentially "
            f"at rate 2λ with λ = {decay} and appears as a straight line on the log y-axis. The theory predicts that "
            f"the network generalises {rounded(theory['grokking_lag'])} time units after the product has fallen to "
            f"{rounded(theory['critical_product'])}; both numbers depend on the data alone.",
        ),
    ]


def meaning(study: GrokkingDiagonal, result: Comparison) -> str:
    """Summarise the measured and predicted grokking times, and explain them."""
    observed, predicted = (side["grokking_time"] for side in (result.observed, result.predicted))
    times = " ".join(
        f"From initial weights of scale {rounded(scale)}, the network generalises at time "
        f"{rounded(observed.sel(scale=scale))} (predicted: {rounded(predicted.sel(scale=scale))})."
        for scale in dict.fromkeys((study.scales[0], study.scales[-1]))
    )
    fitted = rounded(result.predicted.attrs["fitting_time"])
    return (
        f"A diagonal linear network with a weight decay of {rounded(study.weight_decay)} is trained on {study.samples} "
        f"samples of a target that depends on {study.relevant} of {study.inputs} inputs. The theory predicts that the "
        f"network fits the samples by time {fitted}. A network counts as generalising when its relative test error "
        f"falls below {rounded(study.threshold)}. {times} The network first fits the samples with an interpolant of "
        "nearly minimum ℓ2 norm; weight decay then moves the network slowly, at a known rate, towards the interpolant "
        "of minimum ℓ1 norm, which uses few inputs. The grokking time therefore follows from the data, the initial "
        "weights and the weight decay, provided that weight decay is much slower than fitting."
    )
