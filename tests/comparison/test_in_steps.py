from __future__ import annotations

import pytest

from dynascope.comparison import in_steps, step_duration
from dynascope.errors import InputError
from dynascope.record import StaircaseView, describe, make_record

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
    with pytest.raises(InputError, match="no set of samples"):
        in_steps(endless, learning_rate=0.1, batch_size=2)
