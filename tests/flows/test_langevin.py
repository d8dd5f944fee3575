from __future__ import annotations

from typing import Any

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import solve_ivp

from dynascope.errors import DivergenceError, InputError
from dynascope.flows import langevin, ornstein_uhlenbeck
from dynascope.theory import SGD
from dynascope.theory.noise import langevin_moments, stationary_covariance

CURVATURE, START, RUNS = np.array([2.0, 0.5]), [1.0, 0.5], 8000
CHOSEN: dict[str, Any] = {"learning_rate": 0.05, "momentum": 0.9, "weight_decay": 0.1, "batch_size": 8}
TIMES = [0.2, 0.8, 3.0]
STEPS: dict[str, Any] = {"times": TIMES, "time_step": 0.02, "runs": RUNS, **CHOSEN}
COARSE = {"time_step": 0.1}
UNCHECKED = pytest.mark.usefixtures("unchecked_types")
NOISE = np.array([[0.7, 0.3], [0.3, 0.4]])


def deviations(found, theory):
    """By how many standard errors means and variances are off."""
    runs = found.position.shape[1]
    mean = (found.position.mean(1) - theory.position) / np.sqrt(theory.position_variance / runs)
    wide = (found.position.var(1) / theory.position_variance - 1) / np.sqrt(2 / runs)
    swift = (found.velocity.var(1) / theory.velocity_variance - 1) / np.sqrt(2 / runs)
    return np.stack([mean, wide, swift])


@pytest.fixture(scope="module")
def theory():
    return langevin_moments(TIMES, SGD(**CHOSEN), curvature=CURVATURE, noise=[0.7, 0.3], position=START)


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
    expected = stationary_covariance(np.diag(CURVATURE), NOISE, SGD(**CHOSEN), time="continuous")
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
        ({"solver": diffrax.Tsit5()}, "solver"),
        ({"solver": diffrax.Heun()}, "solver"),
        ({"solver": diffrax.ALIGN(), "dynamics": "overdamped"}, "solver"),
        ({"solver": diffrax.ImplicitEuler(), "dynamics": "overdamped"}, "solver"),
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


# Of a quartic loss, from two starts in turn, at a step of 0.5/ω and at a half and a quarter of it.
STARTS = [[1.0, 0.5], [0.3, -0.8]]
QUARTIC: dict[str, Any] = {"start": 32 * STARTS, "times": [4.0], "runs": 64, "noise": [0.7, 0.3]}
QUARTIC |= CHOSEN | {"learning_rate": 0.5}


def quartic(point):
    return point**3


def at_steps(parts, **options) -> list[np.ndarray]:
    return [langevin(quartic, time_step=0.25 / part, **QUARTIC | options).position[-1] for part in parts]


def orders(errors) -> np.ndarray:
    """By which power of the step errors fall from each step to its half."""
    return np.diff(-np.log2([np.linalg.norm(each) for each in errors]))


@pytest.mark.slow
def test_a_solver_has_the_moments_of_the_theory_at_coarse_steps(theory):
    # Steps of 0.65/ω, at which QUICSORT is 0.4 % off, a tenth of the errors of 2000 runs.
    found = langevin(CURVATURE, START, noise=[0.7, 0.3], solver=diffrax.QUICSORT(), **STEPS | {"runs": 2000} | COARSE)
    assert np.abs(deviations(found, theory)).max() < 4


@pytest.mark.slow
def test_paths_of_a_solver_converge_by_its_order():
    """QUICSORT is of third order (arXiv:2109.08012) on the path of a seed, which is the same at half the step."""
    one, half, quarter, fine = at_steps([1, 2, 4, 16], solver=diffrax.QUICSORT())
    # The reference has 1/64 of the error of the finest; paths differ by which the error of a step is by chance small.
    np.testing.assert_allclose(orders([one - fine, half - fine, quarter - fine]), 3, atol=0.3)


@pytest.mark.slow
def test_a_solver_is_more_accurate_than_the_splitting():
    """Without noise, where the law is one path: of third order, and not of second."""
    kick = 2 / (0.5 * 1.9)

    def slope(_, y):
        place, push = np.split(y, 2)
        return np.concatenate([push, -kick * (0.1 * push + place**3 + 0.1 * place)])

    starts = [np.concatenate([start, np.zeros(2)]) for start in STARTS]
    exact = np.array(32 * [solve_ivp(slope, (0, 4), each, rtol=1e-11, atol=1e-12).y[:2, -1] for each in starts])
    still = {"noise": [0.0, 0.0]}
    split = [each - exact for each in at_steps([2, 4], **still)]
    solved = [each - exact for each in at_steps([2, 4], solver=diffrax.QUICSORT(), **still)]
    # The next term of the error is a tenth of the leading one at these steps.
    np.testing.assert_allclose(orders(split), 2, atol=0.2)
    np.testing.assert_allclose(orders(solved), 3, atol=0.2)
    # A seventh at this step, a fifth at twice the step.
    assert np.linalg.norm(solved[1]) < 0.2 * np.linalg.norm(split[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dynamics", "solver"), [("underdamped", diffrax.ALIGN()), ("overdamped", diffrax.Heun())], ids=["under", "over"]
)
def test_a_solver_takes_noise_that_is_correlated(dynamics, solver):
    """Where nothing holds them, θ and the change of ηv/(1 − β) together are the Brownian motion itself."""
    chosen = STEPS | {"times": [3.0], "weight_decay": 0.0, "runs": 4000, "time_step": 0.1}
    found = langevin([0.0, 0.0], [0.0, 0.0], noise=NOISE, dynamics=dynamics, solver=solver, **chosen)
    gone = 0.1 * found.position[0] + found.velocity[0] * 0.05 * 1.9 / 2
    expected = 3 * 0.05 / 8 * NOISE
    np.testing.assert_allclose(gone.T @ gone / 4000, expected, atol=4 * np.sqrt(2 / 4000) * expected.max())
