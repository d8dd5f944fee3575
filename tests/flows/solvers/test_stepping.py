from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.flows.solvers.stepping import loss_between, require_correlation, resolving
from dynascope.tasks import Task


def two_drops(size=1e-3, points=200):
    """A loss that falls by one at time 10 and by the size at time 1000, at the solver's own sparse steps."""
    time = np.concatenate([np.linspace(0, 20, 60), np.linspace(25, 985, 40), np.linspace(990, 1010, 60), [1200.0]])

    def loss(t):
        return 1 / (1 + np.exp(np.clip(t - 10, -700, 700))) + size / (1 + np.exp(np.clip(t - 1000, -700, 700)))

    def rate(t):
        first, second = 1 / (1 + np.exp(-(t - 10).clip(-700, 700))), 1 / (1 + np.exp(-(t - 1000).clip(-700, 700)))
        return first * (1 - first) + size * second * (1 - second)

    record = {"time": time, "loss": loss(time), "descent_rate": rate(time), "pair": np.stack([time, -time], axis=1)}
    return resolving(record, points), loss


def test_kept_times_are_sorted_span_the_run_and_are_as_many_as_asked():
    kept, _ = two_drops()
    assert kept["time"][0] == 0
    assert kept["time"][-1] == 1200
    assert np.all(np.diff(kept["time"]) > 0)
    assert 150 <= len(kept["time"]) <= 200
    assert {name: values.shape[0] for name, values in kept.items()} == dict.fromkeys(kept, len(kept["time"]))


@pytest.mark.parametrize("size", [1.0, 1e-3, 1e-6])
def test_small_drops_are_resolved_too(size):
    kept, _ = two_drops(size)
    for middle in (10, 1000):
        # Equal spacing would put fewer than two of the 200 times there.
        assert np.sum(np.abs(kept["time"] - middle) < 5) >= 10


def test_loss_is_interpolated_through_its_slopes():
    kept, loss = two_drops()
    # Polynomials of degree five over steps of a third of an e-fold, and one at the end of a drop over five of them.
    np.testing.assert_allclose(kept["loss"], loss(kept["time"]), rtol=0, atol=5e-6)
    np.testing.assert_allclose(kept["pair"], np.stack([kept["time"], -kept["time"]], axis=1), rtol=1e-9, atol=1e-9)


def logistic(time):
    loss = 1 / (1 + np.exp(time - 5))
    return {"time": time, "loss": loss, "descent_rate": loss * (1 - loss)}


def test_between_steps_the_error_falls_as_their_sixth_power():
    times = np.linspace(1, 11, 2000)
    # The first and the last interval know of no curvature beyond them.
    off = [
        np.max(np.abs(loss_between(logistic(np.arange(0, 12.1, h)), times) - logistic(times)["loss"]))
        for h in (0.5, 0.25)
    ]
    assert np.log2(off[0] / off[1]) == pytest.approx(6, abs=0.7)


def test_polynomials_of_degree_five_are_met_at_steps_of_any_length():
    steps = np.cumsum([0.0, 0.1, 0.5, 0.2, 0.7, 0.3, 0.3])
    falling = np.polynomial.Polynomial([-1.0, 0.3]) ** 5
    record = {"time": steps, "loss": -falling(steps), "descent_rate": falling.deriv()(steps)}
    times = np.linspace(steps[1], steps[-2], 50)
    np.testing.assert_allclose(loss_between(record, times), -falling(times), rtol=1e-12)


def test_a_rate_of_an_instant_is_no_slope():
    record = logistic(np.arange(0, 10.1, 0.5))
    read = loss_between(record, np.linspace(0, 10, 500))
    record["descent_rate"][6] *= 1000
    excited = loss_between(record, np.linspace(0, 10, 500))
    assert np.all(np.diff(excited) <= 0)
    np.testing.assert_allclose(excited, read, rtol=0, atol=1e-3)


def test_resting_flow_is_kept():
    record = {"time": np.array([0.0, 1.0, 2.0]), "loss": np.ones(3), "descent_rate": np.full(3, 1e-200)}
    kept = resolving(record, 5)
    np.testing.assert_allclose(kept["loss"], 1)
    np.testing.assert_allclose(kept["time"], np.linspace(0, 2, 5), atol=0.3)


def test_targets_without_correlation_are_refused():
    require_correlation(Task([[1.0], [2.0]], [[1.0], [0.0]]))
    with pytest.raises(InputError, match="uncorrelated"):
        require_correlation(Task([[1.0], [1.0]], [[1.0], [-1.0]]))


def test_values_below_the_squares_of_numbers_are_read_without_a_warning(recwarn):
    time = np.array([0.0, 1.0, 2.0, 3.0])
    tiny = np.array([0.0, 1e-310, 3e-310, 1e-300])
    record = {"time": time, "loss": np.full(4, 0.5), "descent_rate": np.array([0.0, 0.0, 0.0, 1e-320]), "seen": tiny}
    read = resolving(record, 10)
    assert not recwarn.list
    np.testing.assert_array_equal(np.interp(time, read["time"], read["loss"]), 0.5)
    assert np.all(np.diff(read["seen"]) >= 0)
    np.testing.assert_allclose(read["seen"][[0, -1]], tiny[[0, -1]])
