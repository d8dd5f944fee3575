from __future__ import annotations

import numpy as np
import pytest

from dynascope import plot, report
from dynascope.comparison import own_curve
from dynascope.comparison.loss_convention import LOSSES
from dynascope.errors import InputError
from dynascope.record import describe


def curve(losses=(1.0, 0.75, 0.5), **more):
    return own_curve(losses, **{"learning_rate": 0.1, "loss": "mse"} | more)


def test_the_record_keeps_losses_and_steps_and_says_their_convention():
    record = curve(steps=[0, 10, 30])
    np.testing.assert_array_equal(record["loss"], [1.0, 0.75, 0.5])
    np.testing.assert_array_equal(record["time"], [0, 10, 30])
    assert "0.1" in record.attrs["convention"]
    assert plot.curves(record, "loss").get_xlabel() == describe("step")[1]


def test_rates_of_each_step_add_up():
    for rates in ([0.1, 0.2], [0.1, 0.2, 0.4]):
        record = curve(learning_rate=rates)
        np.testing.assert_allclose(record["time"], [0, 0.1, 0.3])
    assert record["time"].attrs["units"] == "sum of learning rates"
    np.testing.assert_allclose(curve(learning_rate=np.full(30, 0.1), steps=[0, 10, 30])["time"], [0, 1, 3])


def test_steps_of_rate_zero_are_left_out():
    record = curve([1.0, 1.0, 0.5], learning_rate=[0.0, 0.1])
    np.testing.assert_array_equal(record["loss"], [1.0, 0.5])


def test_a_curve_alone_has_a_page_in_its_own_units():
    page = report.render_page(curve())
    assert "MSELoss" in page
    assert "½" not in page


@pytest.mark.parametrize(
    ("argument", "said", "options"),
    [
        ("learning_rate", "no learning rate", {"learning_rate": None}),
        ("learning_rate", "is 0", {"learning_rate": 0}),
        ("learning_rate", "is -0.1", {"learning_rate": -0.1}),
        ("learning_rate", "not finite", {"learning_rate": np.nan}),
        ("learning_rate", "not an array of real numbers", {"learning_rate": "0.1"}),
        ("learning_rate", "5 learning rates, and the curve goes to step 2", {"learning_rate": [0.1] * 5}),
        ("learning_rate", "1 learning rates, and the curve goes to step 2", {"learning_rate": [0.1]}),
        ("learning_rate", "3 learning rates, and .* to step 200", {"learning_rate": [0.1] * 3, "steps": [0, 100, 200]}),
        ("learning_rate", "least learning rate is -0.1", {"learning_rate": [0.1, -0.1]}),
        ("learning_rate", "least learning rate is 0", {"learning_rate": [0.0, 0.0]}),
        ("loss", "how the loss is defined", {"loss": None}),
        ("losses", "the loss at step 1 is nan", {"losses": [1.0, np.nan, 0.5]}),
        ("losses", "the loss at step 100 is inf", {"losses": [1.0, np.inf, 0.5], "steps": [0, 100, 200]}),
        ("momentum", "is 1:", {"momentum": 1}),
        ("momentum", "is -0.1:", {"momentum": -0.1}),
        ("momentum", "nan", {"momentum": np.nan}),
        ("losses", "the loss at step 2 is -0.5: give a squared loss", {"losses": [1.0, 0.5, -0.5]}),
        ("losses", "1 point:", {"losses": [1.0]}),
        ("losses", "0 points", {"losses": []}),
        ("losses", "first loss is zero", {"losses": [0.0, 0.0]}),
        ("steps", "3 losses and 2 steps", {"steps": [0, 1]}),
        ("steps", "steps does not increase, as 5 follows 10: sort the curve", {"steps": [0, 10, 5]}),
        ("steps", "steps does not increase, as 10 follows 10", {"steps": [0, 10, 10]}),
        ("steps", "begins at step -1", {"steps": [-1, 0, 1]}),
        ("steps", "not finite", {"steps": [0, 1, np.inf]}),
        ("steps", "whole numbers", {"steps": [0, 0.5, 1], "learning_rate": [0.1]}),
    ],
)
def test_bad_curves_are_refused_by_what_is_wrong(argument, said, options):
    with pytest.raises(InputError, match=said) as caught:
        curve(**options)
    assert caught.value.argument == argument


def test_an_unknown_convention_is_answered_by_those_there_are(unchecked_types):
    with pytest.raises(InputError, match="'mse'") as caught:
        curve(loss="cross_entropy")
    assert all(repr(name) in str(caught.value) for name in LOSSES)


def test_steps_are_given_once(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("step,loss\n0,1.0\n10,0.5\n")
    with pytest.raises(InputError, match="steps of its own") as caught:
        curve(path, steps=[0, 1])
    assert caught.value.argument == "steps"


def test_a_curve_over_time_has_no_learning_rate(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("time,loss\n0,1.0\n0.5,0.5\n")
    np.testing.assert_array_equal(curve(path, learning_rate=None)["time"], [0, 0.5])
    with pytest.raises(InputError, match="leave it out") as caught:
        curve(path)
    assert caught.value.argument == "learning_rate"
