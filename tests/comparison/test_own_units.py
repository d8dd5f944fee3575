from __future__ import annotations

import numpy as np
import own_training
import pytest

from dynascope.comparison import compare, own_curve
from dynascope.comparison.own_units import in_units_of, is_own
from dynascope.errors import InputError
from dynascope.record import make_record


def staircase(**attributes):
    columns = {
        "jump_time": [3.0, 9.0],
        "accelerated_time": [1.0, 3.0],
        "settling_time": [0.5, 0.5],
        "growth_rate": [1.0, 0.3],
        "loss_before": [1.0, 0.4],
        "loss_after": [0.4, 0.1],
        "singular_value": [2.0, 1.0],
    }
    return make_record(
        {name: (["jump"], values) for name, values in columns.items()},
        {"jump": [1, 2]},
        attributes={"initial_loss": 1.0, "output_dimension": 4, "samples": 10, **attributes},
    )


def test_losses_times_and_rates_are_converted_and_nothing_else():
    # A step moves our time by the learning rate times 2/4.
    found = in_units_of(staircase(), own_curve([0.5, 0.1], learning_rate=0.1, loss="mse"))
    np.testing.assert_allclose(found["jump_time"], [60, 180])
    np.testing.assert_allclose(found["accelerated_time"], [20, 60])
    np.testing.assert_allclose(found["settling_time"], 10)
    np.testing.assert_allclose(found["growth_rate"], [0.05, 0.015])
    np.testing.assert_allclose(found["loss_before"], [0.5, 0.2])
    np.testing.assert_allclose(found["loss_after"], [0.2, 0.05])
    np.testing.assert_allclose(found["singular_value"], [2, 1])
    assert found.attrs["initial_loss"] == 0.5
    assert found["jump_time"].attrs["units"] == "optimiser steps"
    assert "MSELoss" in found.attrs["convention"]


def test_what_is_converted_stays_as_it_was():
    before, after = staircase(), staircase()
    in_units_of(after, own_curve([0.5, 0.1], learning_rate=0.1, loss="mse"))
    assert before.identical(after)


def test_a_schedule_leaves_the_sum_of_rates():
    found = in_units_of(staircase(), own_curve([1.0, 0.1], learning_rate=[0.1], loss="squared"))
    np.testing.assert_allclose(found["jump_time"], [3, 9])
    assert found["jump_time"].attrs["units"] == "sum of learning rates"


def test_predicted_curves_are_converted_too():
    theory = make_record({"loss": (["time"], [1.0, 0.5, 0.1])}, {"time": [0.0, 1.0, 2.0]}, attributes={"samples": 5})
    losses = 10 * np.interp(0.05 * np.arange(41), theory["time"], theory["loss"])
    tree = compare(losses, theory, learning_rate=0.005, loss="sum")
    assert tree.attrs["verdict"] == "agree"
    np.testing.assert_allclose(tree["predicted"]["time"], [0, 20, 40])


def test_only_curves_of_ones_own_are():
    assert is_own(own_curve([1.0, 0.5], learning_rate=0.1, loss="mse"))
    assert not is_own(staircase())


@pytest.mark.parametrize("side", ["observed", "predicted", "residual"])
def test_every_side_of_a_comparison_says_the_units_of_the_curve(side):
    tree = compare([0.5, 0.4, 0.1], staircase(), learning_rate=0.1, loss="mse")
    assert "MSELoss" in tree[side].attrs["convention"]
    assert not [name for name, values in tree[side].variables.items() if "flow" in values.attrs["units"]]
    assert "MSELoss" in tree.attrs["convention"]


@pytest.mark.parametrize("loss", ["mse", "squared_norm", "sum"])
def test_a_convention_that_nobody_says_is_asked_for_by_the_one_that_fits(loss):
    with pytest.raises(InputError, match=f"the first loss fits loss='{loss}'") as caught:
        compare(own_training.losses(loss, steps=9), own_training.predicted(), learning_rate=0.1)
    assert caught.value.argument == "loss"
    with pytest.raises(InputError, match="choose loss='mse'"):
        compare([123.0, 4.0], own_training.predicted(), learning_rate=0.1)
