"""Figures and text of the page of grokking-diagonal."""

from __future__ import annotations

import functools

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

_CHART_OF_TIMES = functools.partial(Chart, x_label="training time")

FIGURES = (
    _CHART_OF_TIMES(
        "test_error",
        log="x",
        caption="The test error for each size (scale) of the initial weights. It stays high for long after the "
        "samples are fitted and then falls; dashed is what theory says from the time on by which they are fitted.",
    ),
    _CHART_OF_TIMES(
        "loss",
        log="xy",
        y_label="loss on the training samples",
        caption="The samples themselves are fitted early: their loss falls long before the test error does, and "
        "what is left of it is the pull of weight decay.",
    ),
    Chart(
        "grokking_time",
        over="scale",
        title="When the network generalises",
        log="x",
        caption="When the network generalises: the time grows with the logarithm of the initial weights, a "
        "straight line here, and with one over the weight decay, {parameters.weight_decay}.",
        points=True,
    ),
    _CHART_OF_TIMES(
        "weight_product",
        log="y",
        caption="The clock behind it: decay shrinks the products of paired weights at one rate whatever the data "
        "are, a straight line here, and the network generalises when they fall below a value given by the data.",
    ),
)

MEANING = (
    "A simple network, whose weights are pulled towards zero (weight decay {parameters.weight_decay}), was trained "
    "on {parameters.samples} samples of {parameters.inputs} inputs, {parameters.relevant} of which matter. It "
    "generalised, with a relative test error below {parameters.threshold}, at time {observed.grokking_time:first} "
    "from initial weights of size {observed.scale:first} and at {observed.grokking_time:last} from "
    "{observed.scale:last}, long after it had fitted the samples. Theory named the times "
    "{predicted.grokking_time:first} and {predicted.grokking_time:last} from the data alone: the network first "
    "fits in the way that needs the least change, and decay then moves it, slowly and at a known pace, to a fit "
    "with few inputs. This is exact only where decay is much slower than fitting, and for this kind of network."
)
