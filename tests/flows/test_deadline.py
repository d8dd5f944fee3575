from __future__ import annotations

import numpy as np
import pytest

from dynascope import flows, training
from dynascope.errors import InputError
from dynascope.flows.deadline import is_limited, overdue, stopping_after
from dynascope.networks import DiagonalLinear, TwoLayer
from dynascope.tasks import Task

TASK = Task(np.eye(3) * 3**0.5, np.array([[4.0], [-1.0], [0.1]]) * 3**0.5)
NETWORK = TwoLayer(3, 4, 1, activation="relu")
MOMENT = 1e-9  # seconds, over before anything is done


def test_of_two_limits_the_earlier_one_holds_and_each_ends_with_its_block():
    assert not is_limited()
    with stopping_after(MOMENT):
        with stopping_after(3600):
            assert overdue()
        assert is_limited()
    assert not overdue()


def test_a_limit_is_a_time_to_come():
    with pytest.raises(InputError, match="seconds is 0"), stopping_after(0):
        pass


@pytest.mark.slow
@pytest.mark.parametrize(
    "followed",
    [
        lambda: flows.polar_flow(TASK, NETWORK, scale=1e-3, duration=1e5, tolerance=1e-6),
        lambda: flows.diagonal_flow(TASK, scale=1e-3, duration=1e5),
        lambda: flows.gradient_flow(
            TASK, DiagonalLinear(3), flows.GradientFlow(duration=1e5, save=np.geomspace(1, 1e5, 50)), scale=1e-3
        ),
    ],
)
def test_each_flow_ends_with_a_part_of_the_path_it_would_take(followed):
    whole = followed()
    with stopping_after(MOMENT):
        part = followed()
    end = float(part["time"][-1])
    assert 0 < end < 1e5
    times = np.geomspace(end / 1e3, end, 20)
    # Both follow one path, kept at other times: lines between those differ by less than this.
    np.testing.assert_allclose(
        part["loss"].interp(time=times[:-1]),
        whole["loss"].interp(time=times[:-1]),
        rtol=0,
        atol=0.02 * TASK.target_power,
    )


def test_descent_ends_at_a_step_and_says_which():
    with stopping_after(MOMENT):
        run = training.descend(
            TASK, DiagonalLinear(3), training.Descent(learning_rate=1e-3, steps=10**8, save=[0, 1, 10**8]), scale=0.1
        )
    assert run["step"].to_numpy().tolist() == [0, 1]
    assert run.attrs["stopped"] == "at step 1 of 100000000"
    assert float(run["loss"][1]) < float(run["loss"][0])
