from __future__ import annotations

import pytest

from dynascope.errors import InputError
from dynascope.results import Chart
from dynascope.results.chart import from_attributes, to_attributes

FULL = Chart(
    ("accuracy",),
    over="step",
    caption="Both rise to {observed.accuracy:last}.",
    title="Accuracy",
    log="x",
    members={"seed": (0, 1), "start": ("small",)},
    interval=("low", "high"),
    points=True,
    residual=True,
    words=("training",),
    x_label="steps",
    y_label="accuracy",
)


def test_charts_come_back_from_their_attributes():
    charts = (FULL, Chart("loss", staircase=True), Chart(("a", "b"), over="c"), Chart("loss", error="spread"))
    assert from_attributes(to_attributes(charts)) == charts


def test_one_variable_may_be_named_alone():
    assert Chart("loss") == Chart(("loss",))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"variables": ()}, "no variables are given"),
        ({"variables": ("a", "b"), "words": ("one",)}, "words has length 1, but there are 2 variables"),
        ({"variables": ("a", "b"), "error": "c"}, "an interval is given for 2 variables"),
        ({"variables": "a", "error": "c", "interval": ("d", "e")}, "both interval and error are given"),
        ({"variables": "accuracy", "staircase": True}, "a staircase of accuracy"),
    ],
)
def test_a_chart_that_cannot_be_drawn_is_bad_input(fields, problem):
    with pytest.raises(InputError, match=problem):
        Chart(**fields)


@pytest.mark.parametrize("figures", [[{"variable": "loss"}], [{"over": "time"}]])
def test_values_that_are_no_charts_are_bad_input(figures):
    with pytest.raises(InputError, match="figures"):
        from_attributes(figures)


def test_an_axis_scale_that_is_not_known_is_bad_input():
    with pytest.raises(InputError, match="loglog"):
        from_attributes([{"variables": ["loss"], "log": "loglog"}])
