"""Sparse linear functions of fewer samples than inputs, and networks trained on them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynascope.theory.grokking import fitting_time


class Data(NamedTuple):
    inputs: np.ndarray
    targets: np.ndarray
    truth: np.ndarray

    @property
    def arguments(self) -> dict[str, Any]:
        return {
            "inputs": self.inputs,
            "targets": self.targets,
            "test_inputs": np.eye(len(self.truth)),
            "test_targets": self.truth,
        }


def drawn(seed: int, samples: int = 10, inputs: int = 20) -> Data:
    draw = np.random.default_rng(seed)
    x, truth = draw.normal(size=(samples, inputs)), np.zeros(inputs)
    truth[seed % inputs] = 1.0
    return Data(x, x @ truth, truth)


def trained(data: Data, times: np.ndarray, *, scale: float, weight_decay: float) -> tuple[np.ndarray, np.ndarray]:
    """u and v at the times, by direct integration of the flow of all weights."""
    x, y = data.inputs, data.targets
    size = x.shape[1]

    def velocity(_, weights):
        u, v = weights[:size], weights[size:]
        slope = x.T @ (x @ (u**2 - v**2) - y) / len(y)
        return np.concatenate([-2 * u * slope - weight_decay * u, 2 * v * slope - weight_decay * v])

    path = solve_ivp(velocity, (0, times[-1]), np.full(2 * size, scale), "LSODA", times, rtol=1e-9, atol=1e-12)
    return path.y[:size].T, path.y[size:].T


@pytest.fixture(scope="session")
def runs():
    """Two data sets, trained at a decay and at half of it."""
    found = []
    for seed in (0, 1):
        data = drawn(seed)
        for decay in (0.01, 0.005):
            fitted = fitting_time(data.inputs, scale=1.0, weight_decay=decay)
            assert fitted is not None
            times = np.append(0.0, np.geomspace(fitted, 4 / decay, 200))
            found.append((data, decay, times, *trained(data, times, scale=1.0, weight_decay=decay)))
    return found


@pytest.fixture(scope="session")
def sparse():
    """Draws a data set from a seed."""
    return drawn
