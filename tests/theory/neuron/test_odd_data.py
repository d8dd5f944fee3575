from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.flows import pattern_flow
from dynascope.theory.neuron import fixed_pattern, linear_equivalent, neuron_trajectory

ANGLES = np.pi * np.arange(8) / 4 + 0.2
X = np.sqrt(2) * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
B = np.array([1.0, -0.5])
START = 0.3, np.array([-0.4, 0.35])


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def trajectory(slope: float, t: float) -> tuple[np.ndarray, np.ndarray, float]:
    """The output weight, the weights and the loss of the neuron on whitened data."""
    equivalent = linear_equivalent(slope)
    path = neuron_trajectory(*START, equivalent.target_factor * B, equivalent.time_factor * t)
    loss = equivalent.time_factor * path.excess_loss + equivalent.unexplained * B @ B / 2
    return path.output_weight, path.weights, loss


def test_golden_trajectories():
    a, w, loss = trajectory(0.0, 3.0)
    # Stored with ten decimals, and with eight.
    np.testing.assert_allclose([a, loss], [-0.4512556164, 0.4895195192], rtol=0, atol=6e-11)
    np.testing.assert_allclose(w, [-0.49631875, 0.38703918], rtol=0, atol=6e-9)
    a, _, loss = trajectory(0.3, 3.0)
    np.testing.assert_allclose([a, loss], [-0.7010388109, 0.2990390023], rtol=0, atol=6e-11)
    final = [linear_equivalent(slope).unexplained * B @ B / 2 for slope in (0.0, 0.3, 1.0)]
    np.testing.assert_allclose(final, [0.3125, 0.1404816514, 0], rtol=0, atol=6e-11)


@pytest.mark.parametrize("slope", [0.0, 0.3])
def test_the_linear_neuron_is_exact_through_pattern_changes(slope):
    a, w = START
    flow = pattern_flow([3.0, 6.0], X, X @ B, [a], [w], negative_slope=slope)
    assert flow.status == "complete"
    output, weights, loss = trajectory(slope, 3.0)
    np.testing.assert_allclose(flow.output_weights[0, 0], output, rtol=0, atol=1e-9)
    np.testing.assert_allclose(flow.input_weights[0, 0], weights, rtol=0, atol=1e-9)
    np.testing.assert_allclose(flow.loss[0], loss, rtol=0, atol=1e-9)
    assert flow.flip_time.size > 0
    if slope:
        assert np.mean((X @ flow.input_weights[-1, 0] > 0) != (X @ w > 0)) == 0.25


@given(slope=st.floats(0, 1), angle=st.floats(0, 6.28))
def test_moments_do_not_depend_on_the_pattern(slope, angle):
    w, equivalent = np.array([np.cos(angle), np.sin(angle)]), linear_equivalent(slope)
    pattern = fixed_pattern(X, X @ B, w, negative_slope=slope)
    np.testing.assert_allclose(pattern.second_moment, equivalent.time_factor * np.eye(2), atol=1e-14)
    target = np.linalg.solve(pattern.second_moment, pattern.correlation)
    np.testing.assert_allclose(target, equivalent.target_factor * B, atol=1e-14)
