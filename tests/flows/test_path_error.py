import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.flows.path_error import PathErrorController


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def solve(field, start, duration, controller, **options):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, args: field(y)),
        diffrax.Tsit5(),
        0.0,
        duration,
        None,
        jnp.asarray(start),
        stepsize_controller=controller,
        max_steps=100_000,
        **options,
    )


def test_tiny_motion_beside_large_weights_is_followed():
    # A weight that grows from 1e-12, entangled with one that is large and rests.
    mix = np.array([[0.8, -0.6], [0.6, 0.8]])
    growth = mix @ np.diag([0.0, 1.0]) @ mix.T
    start = mix @ np.array([1.0, 1e-12])
    end = solve(lambda y: growth @ y, start, 20.0, PathErrorController(1e-6, 0.0)).ys[-1]
    usual = solve(lambda y: growth @ y, start, 20.0, diffrax.PIDController(1e-6, 1e-8)).ys[-1]
    grown, usually = ((mix.T @ np.asarray(y))[1] / (1e-12 * np.exp(20.0)) for y in (end, usual))
    # A millionth of the path for each of some ten times that it grows by e; rounding of the large weight adds 1e-4.
    assert grown == pytest.approx(1, abs=1e-3)
    assert abs(usually - 1) > abs(grown - 1)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-5, 1e-7])
def test_the_error_stays_below_the_tolerance_times_the_path(tolerance):
    start = np.array([0.1, 3.0])
    end = np.asarray(solve(lambda y: y * (1 - y), start, 3.0, PathErrorController(tolerance, 0.0)).ys[-1])
    exact = 1 / (1 + (1 / start - 1) * np.exp(-3.0))
    # The path is shorter than three, and the flow contracts in the end.
    assert np.abs(end - exact).max() < 3 * tolerance


def test_a_resting_state_rests_and_zero_weights_start():
    assert np.array_equal(solve(lambda y: 0 * y, np.ones(2), 1e6, PathErrorController(1e-6, 0.0)).ys[-1], np.ones(2))
    end = solve(lambda y: 1 - y, np.zeros(2), 1.0, PathErrorController(1e-6, 0.0)).ys[-1]
    assert end == pytest.approx(np.full(2, 1 - np.exp(-1.0)), rel=1e-6)


def test_a_kink_is_crossed_in_few_steps():
    # y' = 1 below zero and 1/10 above.
    solution = solve(lambda y: jnp.where(y < 0, 1.0, 0.1), [-1.0], 3.0, PathErrorController(1e-8, 0.0))
    # An estimated 1e-4 of the motion of a step, which is up to a hundred times too small across a jump.
    assert float(solution.ys[-1, 0]) == pytest.approx(0.2, abs=5e-3)
    assert int(solution.stats["num_steps"]) < 300


def test_a_flow_slides_along_a_kink():
    # Both sides push towards y₁ = 0, while y₀ relaxes to one.
    def field(y):
        return jnp.stack([1 - y[0], -jnp.sign(y[1]) * (1 + 0.5 * y[0])])

    solution = solve(field, [0.0, 0.3], 3.0, PathErrorController(1e-6, 0.0))
    assert solution.ys[-1] == pytest.approx([1 - np.exp(-3.0), 0.0], abs=2e-3)
    assert int(solution.stats["num_steps"]) < 50_000


def test_a_field_without_kinks_is_never_taken_for_one():
    # Stability limits these steps, so that attempts fail for the length of the step alone.
    rates = jnp.array([1.0, 300.0])
    end = solve(lambda y: -rates * y, np.ones(2), 12.0, PathErrorController(1e-6, 0.0)).ys[-1]
    assert float(end[0]) == pytest.approx(np.exp(-12.0), rel=1e-4)
