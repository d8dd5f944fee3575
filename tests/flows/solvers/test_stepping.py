from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import DivergenceError, InputError
from dynascope.flows.solvers.stepping import follow, require_correlation, resolving
from dynascope.tasks import Task


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def decay(_, state, arguments):
    """Decay at a rate if the power is one; −state² if it is two."""
    return -arguments["rate"] * state ** arguments["power"]


def statistics(time, state, arguments):
    return {"loss": state**2 / 2, "descent_rate": arguments["rate"] * state**2, "seen": jnp.stack([state, time])}


def unchanged(state):
    return state


def followed(renewed=unchanged, *, rate=2.0, power=1.0, restart_every=8, longest_step=0.1, tolerance=1e-10):
    return follow(
        decay,
        statistics,
        renewed,
        np.asarray(1.0),
        {"rate": np.asarray(rate), "power": np.asarray(power)},
        duration=5.0,
        longest_step=longest_step,
        restart_every=restart_every,
        tolerance=tolerance,
    )


@pytest.mark.slow
@pytest.mark.parametrize("restart_every", [8, pytest.param(4096, marks=pytest.mark.slow)])
def test_every_step_is_recorded_once_up_to_the_end(restart_every):
    record = followed(restart_every=restart_every)
    assert record["time"][0] == 0
    np.testing.assert_allclose(record["time"][-1], 5, rtol=1e-12)
    assert np.all(np.diff(record["time"]) > 0)
    assert np.diff(record["time"]).max() <= 0.1 * (1 + 1e-9)
    np.testing.assert_allclose(record["loss"], np.exp(-4 * record["time"]) / 2, rtol=0, atol=1e-9)
    np.testing.assert_allclose(record["seen"][:, 1], record["time"], rtol=1e-12)


@pytest.mark.slow
def test_state_is_renewed_at_each_restart():
    # Doubled after every eighth step of 0.1 at most: the decay by e⁻² in a unit of time is nearly undone.
    kept, doubled = followed(), followed(renewed=lambda state: 2 * state)
    assert doubled["seen"][-1, 0] > 30 * kept["seen"][-1, 0]


@pytest.mark.slow
def test_shorter_tolerances_take_more_steps():
    assert len(followed(longest_step=5.0, tolerance=1e-12)["time"]) > len(followed(longest_step=5.0)["time"])


@pytest.mark.slow
def test_divergence_tells_the_time():
    # y' = y² from 1 leaves the finite numbers at time 1.
    with pytest.raises(DivergenceError, match="could not be continued") as caught:
        followed(rate=-1.0, power=2.0)
    assert caught.value.time == pytest.approx(1, abs=0.01)


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
    # Cubic interpolation over steps of a third of an e-fold.
    np.testing.assert_allclose(kept["loss"], loss(kept["time"]), rtol=0, atol=2e-5)
    np.testing.assert_allclose(kept["pair"], np.stack([kept["time"], -kept["time"]], axis=1), rtol=1e-9, atol=1e-9)


def test_resting_flow_is_kept():
    record = {"time": np.array([0.0, 1.0, 2.0]), "loss": np.ones(3), "descent_rate": np.full(3, 1e-200)}
    kept = resolving(record, 5)
    np.testing.assert_allclose(kept["loss"], 1)
    np.testing.assert_allclose(kept["time"], np.linspace(0, 2, 5), atol=0.3)


def test_targets_without_correlation_are_refused():
    require_correlation(Task([[1.0], [2.0]], [[1.0], [0.0]]))
    with pytest.raises(InputError, match="no correlation"):
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
