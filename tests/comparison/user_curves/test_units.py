from __future__ import annotations

import numpy as np
import pytest
import user_training

from dynascope.comparison import compare, in_steps, step_duration, user_curve
from dynascope.comparison.user_curves.units import LOSSES, factor_of, in_units_of, is_user_curve, matching_conventions
from dynascope.errors import InputError
from dynascope.results import StaircaseView, describe, make_record

FACTS = {"output_dimension": 3, "samples": 40}


def test_factors_are_those_of_the_formulas():
    assert set(user_training.FACTORS) == set(LOSSES)
    for name, factor in user_training.FACTORS.items():
        assert factor_of(name, FACTS) == pytest.approx(factor(40, 3))


def test_pytorch_means_and_sums_as_it_is_said_here():
    torch = pytest.importorskip("torch")
    x, y = map(torch.tensor, user_training.data())
    for name, module in (("mse", torch.nn.MSELoss()), ("sum", torch.nn.MSELoss(reduction="sum"))):
        ours = float(((x[:, :3] - y) ** 2).sum(dim=1).mean() / 2)
        assert module(x[:, :3], y).item() == pytest.approx(factor_of(name, FACTS) * ours)


@pytest.mark.parametrize(("loss", "lacks"), [("mse", "output_dimension"), ("sum", "samples")])
def test_conventions_that_need_a_number_ask_for_it(loss, lacks):
    with pytest.raises(InputError, match=lacks) as caught:
        factor_of(loss, {name: value for name, value in FACTS.items() if name != lacks})
    assert caught.value.argument == "loss"


def test_a_wrong_convention_is_told_by_the_ratio_of_losses():
    assert matching_conventions(3.0, "mse", FACTS, 0.02) == ["squared_norm"]
    assert matching_conventions(0.5, "mse", FACTS, 0.02) == ["half_mse"]
    assert matching_conventions(0.7, "mse", FACTS, 0.02) == []
    # What is the same for these data is no other convention.
    assert matching_conventions(1.0, "mse", {"output_dimension": 1}, 0.02) == []


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
    found = in_units_of(staircase(), user_curve([0.5, 0.1], learning_rate=0.1, loss="mse"))
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
    in_units_of(after, user_curve([0.5, 0.1], learning_rate=0.1, loss="mse"))
    assert before.identical(after)


def test_a_schedule_leaves_the_sum_of_rates():
    found = in_units_of(staircase(), user_curve([1.0, 0.1], learning_rate=[0.1], loss="squared"))
    np.testing.assert_allclose(found["jump_time"], [3, 9])
    assert found["jump_time"].attrs["units"] == "sum of learning rates"


def test_predicted_curves_are_converted_too():
    theory = make_record({"loss": (["time"], [1.0, 0.5, 0.1])}, {"time": [0.0, 1.0, 2.0]}, attributes={"samples": 5})
    losses = 10 * np.interp(0.05 * np.arange(41), theory["time"], theory["loss"])
    tree = compare(user_curve(losses, learning_rate=0.005, loss="sum"), theory)
    assert tree.verdict.outcome == "agree"
    np.testing.assert_allclose(tree.predicted["time"], [0, 20, 40])


def test_curves_of_the_user_are_recognised():
    assert is_user_curve(user_curve([1.0, 0.5], learning_rate=0.1, loss="mse"))
    assert not is_user_curve(staircase())


@pytest.mark.parametrize("side", ["observed", "predicted", "residual"])
def test_every_side_of_a_comparison_says_the_units_of_the_curve(side):
    tree = compare(user_curve([0.5, 0.4, 0.1], learning_rate=0.1, loss="mse"), staircase())
    assert "MSELoss" in getattr(tree, side).attrs["convention"]
    assert not [name for name, values in getattr(tree, side).variables.items() if "flow" in values.attrs["units"]]


@pytest.mark.parametrize("loss", ["mse", "squared_norm", "sum"])
def test_a_convention_that_nobody_says_is_asked_for_by_the_one_that_fits(loss):
    with pytest.raises(InputError, match=f"the first loss fits loss='{loss}'") as caught:
        compare(user_training.losses(loss, steps=9), user_training.predicted())
    assert caught.value.argument == "observed"
    with pytest.raises(InputError, match="choose loss='mse'"):
        compare([123.0, 4.0], user_training.predicted())


THEORY = make_record(
    {
        "jump_time": (["jump"], [3.0, 6.0]),
        "loss_before": (["jump"], [1.0, 0.2]),
        "loss_after": (["jump"], [0.2, 0.0]),
    },
    {"jump": [1, 2]},
    attributes={"samples": 60, "output_dimension": 4},
)


def test_a_step_moves_time_by_the_rate_of_our_loss():
    assert step_duration(THEORY, learning_rate=0.1) == 0.1
    # The mean over four outputs without ½ is half of ours, and descends half as fast.
    assert step_duration(THEORY, learning_rate=0.1, loss="mse") == pytest.approx(0.05)
    assert step_duration(THEORY, learning_rate=0.1, momentum=0.9) == pytest.approx(1.0)
    told = in_steps(THEORY, learning_rate=0.1, momentum=0.9).attrs["steps"]
    assert ("0.1" in told, "0.9" in told) == (True, True)


def test_jumps_have_steps_and_epochs_in_words_and_units():
    told = in_steps(THEORY, learning_rate=0.1, loss="mse", batch_size=15)
    assert [row.step for row in StaircaseView(told).rows] == pytest.approx([60.0, 120.0])
    assert [row.epoch for row in StaircaseView(told).rows] == pytest.approx([15.0, 30.0])
    assert told["jump_step"].attrs["units"] == describe("step")[1]
    assert all(number in told.attrs["steps"] for number in ("0.1", "15", "60"))
    assert "jump_epoch" not in in_steps(told, learning_rate=0.1).drop_vars("jump_epoch")


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": 0.1, "momentum": 1.0}, "momentum"),
        ({"learning_rate": 0.1, "batch_size": 61}, "batch_size"),
        ({"learning_rate": 0.1, "batch_size": 0}, "batch_size"),
    ],
)
def test_wrong_steps_are_named(wrong, argument):
    with pytest.raises(InputError) as caught:
        in_steps(THEORY, **wrong)
    assert caught.value.argument == argument


def test_what_has_no_samples_has_no_epochs():
    endless = make_record(
        THEORY.variables and {n: (v.dims, v.values) for n, v in THEORY.data_vars.items()}, {"jump": [1, 2]}
    )
    with pytest.raises(InputError, match="epochs are undefined, because the task has no samples"):
        in_steps(endless, learning_rate=0.1, batch_size=2)
