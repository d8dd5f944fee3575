from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.flows.solvers.integrate_until import FlowState, integrate_until, tsitouras
from dynascope.flows.solvers.runge_kutta_legendre import legendre_step


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def swing(state):
    """A harmonic oscillator."""
    return jnp.stack([state[1], -state[0]])


@jit
def swung(end, tolerance, limit):
    start = jnp.array([0.0, 1.0])
    here = FlowState(jnp.zeros(()), start, swing(start))
    return integrate_until(
        here, end, tsitouras(swing), lambda now: now.state[0] > limit, order=5, tolerance=tolerance, most=200
    )[:3]


def test_a_flow_is_followed_to_the_end_within_the_tolerance():
    for tolerance in (1e-5, 1e-9):
        here, stopped, steps = jax.device_get(swung(10.0, tolerance, 2.0))
        assert float(here.time) == 10.0
        assert not stopped
        # Errors of all steps add up, as nothing damps them.
        np.testing.assert_allclose(here.state, [np.sin(10), np.cos(10)], atol=int(steps) * tolerance)
        np.testing.assert_allclose(here.slope, [here.state[1], -here.state[0]], atol=1e-15)


def test_the_method_is_of_order_five():
    @jit
    def moved(step):
        start = jnp.array([0.0, 1.0])
        return tsitouras(swing)(FlowState(jnp.zeros(()), start, swing(start)), step, ())[0]

    def error(step):
        return np.linalg.norm(np.asarray(moved(step)) - [np.sin(step), np.cos(step)])

    # The error of a step is of order six, up to a part of order seven that is smaller by the step.
    orders = [np.log2(error(step) / error(step / 2)) for step in (0.4, 0.2, 0.1)]
    assert orders[-1] == pytest.approx(6, abs=0.2)
    assert abs(orders[1] - 6) < abs(orders[0] - 6)


def test_it_stops_after_the_step_in_which_something_happens():
    here, stopped, steps = swung(10.0, 1e-9, 0.5)
    assert stopped
    assert float(here.state[0]) > 0.5
    # A step of this accuracy is short beside a radian.
    assert float(here.time) == pytest.approx(np.arcsin(0.5), abs=0.2)
    assert 1 < int(steps) < 200


def test_it_gives_up_after_so_many_steps():
    here, stopped, steps = swung(1e6, 1e-9, 2.0)
    assert int(steps) == 200
    assert not stopped
    assert float(here.time) < 1e6


def test_what_does_not_move_reaches_the_end():
    still = tsitouras(jnp.zeros_like)

    @jit
    def reached(start, end):
        return integrate_until(start, end, still, lambda now: now.time < 0, order=5, tolerance=1e-9, most=9)[0]

    here = reached(FlowState(np.zeros(()), np.ones(2), np.zeros(2)), np.ones(()))
    assert float(here.time) == 1.0
    np.testing.assert_array_equal(here.state, 1.0)


def test_a_stabilised_step_is_accurate_in_slow_directions_and_stable_in_fast_ones():
    rates, along = np.array([1.0, 1e4]), np.array([0.0, 1.0])

    @jit
    def step(start, along, length):
        return legendre_step(lambda y: -rates * y, start, -rates * start, along, length)

    end, slope, wrong, direction, slopes = jax.device_get(step(np.ones(2), along, 0.1))
    # Of second order: what is missing is about (h³ / 6).
    assert abs(float(end[0]) - np.exp(-0.1)) < 2e-4
    assert abs(float(end[1])) < 1
    np.testing.assert_allclose(slope, -rates * end, rtol=1e-12)
    np.testing.assert_allclose(np.abs(direction), along, atol=1e-12)
    assert wrong.shape == (2,)
    # As many as stability takes, far fewer than the thousand steps that are stable by themselves.
    assert 40 < float(slopes) < 80
