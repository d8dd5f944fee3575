from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dynascope.errors import DivergenceError, InputError
from dynascope.flows import langevin, ornstein_uhlenbeck
from dynascope.theory.noise import langevin_moments, stationary_covariance

CURVATURE, START, RUNS = np.array([2.0, 0.5]), [1.0, 0.5], 8000
CHOSEN: dict[str, Any] = {"learning_rate": 0.05, "momentum": 0.9, "weight_decay": 0.1, "batch_size": 8}
TIMES = [0.2, 0.8, 3.0]
STEPS: dict[str, Any] = {"times": TIMES, "time_step": 0.02, "runs": RUNS, **CHOSEN}
UNCHECKED = pytest.mark.usefixtures("unchecked_types")
NOISE = np.array([[0.7, 0.3], [0.3, 0.4]])


def deviations(found, theory):
    """By how many standard errors means and variances are off."""
    mean = (found.position.mean(1) - theory.position) / np.sqrt(theory.position_variance / RUNS)
    wide = (found.position.var(1) / theory.position_variance - 1) / np.sqrt(2 / RUNS)
    swift = (found.velocity.var(1) / theory.velocity_variance - 1) / np.sqrt(2 / RUNS)
    return np.stack([mean, wide, swift])


@pytest.fixture(scope="module")
def theory():
    return langevin_moments(TIMES, curvature=CURVATURE, noise=[0.7, 0.3], position=START, **CHOSEN)


@pytest.mark.parametrize("exact", [True, False])
def test_runs_have_the_moments_of_the_theory(exact, theory):
    chosen: dict[str, Any] = {"noise": [0.7, 0.3], "times": TIMES, "runs": RUNS, **CHOSEN}
    if exact:
        found = ornstein_uhlenbeck(CURVATURE, position=START, **chosen)
    else:
        # Steps of 0.13/ω leave 0.2 % in means and variances, below a tenth of the errors here.
        found = langevin(CURVATURE, START, time_step=0.02, **chosen)
    off = deviations(found, theory)
    # 18 numbers, each beyond 4 with probability 6e-5.
    assert np.abs(off).max() < 4
    assert found.position.shape == (3, RUNS, 2)


def rotated(point):
    return jnp.stack([2 * point[0], 0.5 * point[1]])


@pytest.mark.slow
def test_a_gradient_with_correlated_noise_ends_at_the_solution_of_lyapunov():
    times = [40.0]
    found = langevin(rotated, START, noise=NOISE, **STEPS | {"times": times})
    expected = stationary_covariance(np.diag(CURVATURE), NOISE, time="continuous", **CHOSEN)
    error = 4 * np.sqrt(2 / RUNS)
    np.testing.assert_allclose(np.cov(found.position[0].T), expected.position, atol=error * expected.position.max())
    np.testing.assert_allclose(np.cov(found.velocity[0].T), expected.velocity, atol=error * expected.velocity.max())


@pytest.mark.slow
def test_overdamped_runs_relax_to_the_same_spread_of_weights():
    found = langevin(CURVATURE, START, noise=[0.7, 0.3], dynamics="overdamped", **STEPS | {"time_step": 0.01})
    steep = CURVATURE + 0.1
    left = np.exp(-np.outer(TIMES, steep) / 0.1)
    wide = 0.05 * np.array([0.7, 0.3]) / (2 * 8 * 0.1 * steep)
    # Steps of a fifth of the fastest time.
    np.testing.assert_allclose(found.position.mean(1), START * left, atol=0.03)
    np.testing.assert_allclose(found.position[-1].var(0) / wide, 1, atol=4 * np.sqrt(2 / RUNS) + 0.02)
    assert not found.velocity.any()


def test_exact_runs_are_gaussian_and_of_their_seed():
    chosen: dict[str, Any] = {"noise": [0.7, 0.3], "times": TIMES, "runs": 2000, **CHOSEN}
    one, again, other = (ornstein_uhlenbeck(CURVATURE, seed=seed, **chosen) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.position, again.position)
    assert (one.position != other.position).all()
    assert stats.normaltest(one.position[-1, :, 0]).pvalue > 1e-3
    # The first time may be zero, at which nothing has moved.
    still = ornstein_uhlenbeck(CURVATURE, noise=0.1, times=[0.0], learning_rate=0.1, position=2.0, runs=3)
    assert (still.position == 2).all()


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"start": []}, "start"),
        ({"noise": [-1.0, 1.0]}, "noise"),
        ({"noise": [[1.0, 2.0], [2.0, 1.0]]}, "noise"),
        ({"times": [1.0, 0.5]}, "times"),
        ({"times": [1.0, 1.001]}, "time_step"),
        ({"time_step": 0.0}, "time_step"),
        ({"gradient": [1.0]}, "gradient"),
        ({"velocity": [1.0]}, "velocity"),
        ({"dynamics": "damped"}, "dynamics"),
        ({"runs": 0}, "runs"),
    ],
)
@UNCHECKED
def test_bad_input_is_refused_by_name(changes, argument):
    with pytest.raises(InputError) as caught:
        langevin(**{"gradient": CURVATURE, "start": START, "noise": [0.7, 0.3]} | STEPS | changes)
    assert caught.value.argument == argument


def test_steps_that_are_too_large_are_told():
    with pytest.raises(DivergenceError, match="time_step"):
        langevin(1e9 * CURVATURE, START, noise=[0.7, 0.3], **STEPS)
