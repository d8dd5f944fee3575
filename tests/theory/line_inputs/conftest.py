from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynascope.theory.line_inputs import line_data


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session")
def line_samples():
    """Inputs on a line of d dimensions, with targets of a given slope and noise."""

    def draw(slope, *, dimension=2, noise=0.3, seed=0):
        generator = np.random.default_rng(seed)
        direction = np.abs(generator.normal(size=dimension))
        along = generator.normal(size=7)
        targets = slope * along + noise * generator.normal(size=7)
        inputs = np.outer(along, direction / np.linalg.norm(direction))
        # Noise moves the slope of the best fit; what moves it is taken out.
        targets -= along * (along @ targets / (along @ along) - slope)
        return inputs, targets, line_data(inputs, targets)

    return draw


@pytest.fixture(scope="session")
def integrate():
    """Gradient flow on the weights of f(x) = γ x W u, straight from the samples: W and u at all times."""

    def train(network, inputs, targets, times, *, prefactor):
        first, second, multiplier, rates = network
        shape = first.shape

        def velocity(_, state):
            w, u = state[: first.size].reshape(shape), state[first.size :]
            slope = 2 * prefactor * multiplier * inputs.T @ (multiplier * inputs @ w @ u - targets) / len(inputs)
            return -np.concatenate([rates.first * np.outer(slope, u).ravel(), rates.second * (slope @ w)])

        start = np.concatenate([first.ravel(), second])
        # An exact saddle is left at the size of the integrator's rounding, so tolerances are as tight as they go.
        run = solve_ivp(velocity, (0, times[-1]), start, "DOP853", times, rtol=1e-12, atol=1e-14).y.T
        return run[:, : first.size].reshape(-1, *shape), run[:, first.size :]

    return train
