import diffrax
import jax
import numpy as np
import pytest

from dynascope.compilation import filter_jit
from dynascope.flows.solvers.path_error import PathErrorController


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@filter_jit
def solved(field, start, duration, controller, arguments):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Tsit5(),
        0.0,
        duration,
        None,
        start,
        arguments,
        stepsize_controller=controller,
        max_steps=100_000,
    ).ys[-1]


def end_of(field, start, duration, controller, tolerances, arguments=None):
    """The state at the end, by a program that is compiled once for each field and kind of controller."""
    steps = controller(*map(np.asarray, tolerances))
    return np.asarray(solved(field, np.asarray(start), np.asarray(duration), steps, arguments))


def linear(t, y, arguments):
    matrix, push = arguments
    return matrix @ y + push


def logistic(t, y, _):
    return y * (1 - y)


@pytest.mark.slow
def test_tiny_motion_beside_large_weights_is_followed():
    # A weight that grows from 1e-12, entangled with one that is large and rests.
    mix = np.array([[0.8, -0.6], [0.6, 0.8]])
    growth = mix @ np.diag([0.0, 1.0]) @ mix.T
    start = mix @ np.array([1.0, 1e-12])
    end = end_of(linear, start, 20.0, PathErrorController, (1e-6, 0.0), (growth, np.zeros(2)))
    usual = end_of(linear, start, 20.0, diffrax.PIDController, (1e-6, 1e-8), (growth, np.zeros(2)))
    grown, usually = ((mix.T @ y)[1] / (1e-12 * np.exp(20.0)) for y in (end, usual))
    # A millionth of the path for each of some ten times that it grows by e; rounding of the large weight adds 1e-4.
    assert grown == pytest.approx(1, abs=1e-3)
    assert abs(usually - 1) > abs(grown - 1)


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", [1e-3, 1e-5, 1e-7])
def test_the_error_stays_below_the_tolerance_times_the_path(tolerance):
    start = np.array([0.1, 3.0])
    end = end_of(logistic, start, 3.0, PathErrorController, (tolerance, 0.0))
    exact = 1 / (1 + (1 / start - 1) * np.exp(-3.0))
    # The path is shorter than three, and the flow contracts in the end.
    assert np.abs(end - exact).max() < 3 * tolerance


@pytest.mark.slow
def test_a_resting_state_rests_and_zero_weights_start():
    nothing = np.zeros((2, 2)), np.zeros(2)
    resting = end_of(linear, np.ones(2), 1e6, PathErrorController, (1e-6, 0.0), nothing)
    assert np.array_equal(resting, np.ones(2))
    end = end_of(linear, np.zeros(2), 1.0, PathErrorController, (1e-6, 0.0), (-np.eye(2), np.ones(2)))
    assert end == pytest.approx(np.full(2, 1 - np.exp(-1.0)), rel=1e-6)


@pytest.mark.slow
def test_decay_is_followed_where_stability_limits_the_steps():
    # Stability limits these steps, so that attempts fail for the length of the step alone.
    decay = np.diag([-1.0, -300.0]), np.zeros(2)
    end = end_of(linear, np.ones(2), 12.0, PathErrorController, (1e-6, 0.0), decay)
    assert end[0] == pytest.approx(np.exp(-12.0), rel=1e-4)
