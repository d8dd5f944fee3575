from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.flows import pattern_flow
from dynascope.theory.neuron import fixed_pattern, function_space_flow, neuron_trajectory

SAMPLES = np.random.default_rng(1).normal(size=(6, 3)), np.random.default_rng(2).normal(size=6)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("slope", [0.0, 0.3])
def test_until_its_pattern_changes_a_neuron_is_a_linear_neuron_on_masked_inputs(slope):
    (x, y), a, w = SAMPLES, 0.4, np.array([0.5, -0.3, 0.2])
    flow = pattern_flow([0.0, 100.0], x, y, [a], [w], negative_slope=slope)
    end = flow.flip_time[0]
    assert 0 < end < 100
    pattern = fixed_pattern(x, y, w, negative_slope=slope)
    times = np.array([0.9, 1.0]) * end
    path = function_space_flow(times, pattern.inputs, y, a * w, a**2 - w @ w)
    found = pattern_flow(times[:1], x, y, [a], [w], negative_slope=slope)
    np.testing.assert_allclose(found.output_weights[0] * found.input_weights[0, 0], path.coefficients[0], atol=1e-9)
    np.testing.assert_allclose(flow.flip_loss[0], path.loss[1], rtol=1e-8)


@pytest.mark.slow
def test_a_masked_second_moment_that_is_white_gives_the_closed_form():
    # The active samples are orthogonal, the other is inactive.
    x, y, w = 2 * np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), np.array([1.0, 2.0, 0.0]), np.array([0.2, 0.1])
    pattern, t = fixed_pattern(x, y, w), 0.7
    square = pattern.second_moment[0, 0]
    np.testing.assert_allclose(pattern.second_moment, square * np.eye(2), atol=1e-15)
    closed = neuron_trajectory(0.5, w, pattern.correlation / square, square * t)
    flow = pattern_flow([t], x, y, [0.5], [w])
    np.testing.assert_allclose(flow.input_weights[0, 0], closed.weights, rtol=1e-9)


@given(slope=st.floats(0, 1), seed=st.integers(0, 100))
def test_the_moments_give_the_loss_of_the_pattern(slope, seed):
    rng = np.random.default_rng(seed)
    x, y, w, a = rng.normal(size=(5, 2)), rng.normal(size=5), rng.normal(size=2), rng.normal()
    pattern = fixed_pattern(x, y, w, negative_slope=slope)
    loss = np.mean((a * np.maximum(x @ w, slope * (x @ w)) - y) ** 2) / 2
    beta = a * w
    quadratic = beta @ pattern.second_moment @ beta / 2 - beta @ pattern.correlation + np.mean(y**2) / 2
    np.testing.assert_allclose(quadratic, loss, rtol=1e-12)


def test_a_sample_on_the_boundary_is_refused():
    with pytest.raises(InputError) as caught:
        fixed_pattern([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0], [0.0, 1.0])
    assert caught.value.argument == "weights"
