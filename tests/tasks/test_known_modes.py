from __future__ import annotations

import numpy as np
import pytest

from dynascope.tasks.known_modes import (
    example_moments,
    halving_modes,
    neuron_regression,
    random_moments,
    relu_data,
    unit_regression,
)


@pytest.mark.parametrize("moments", [lambda kind: example_moments(kind), lambda kind: random_moments(kind, 4, seed=1)])
def test_moments_are_white_or_commute_where_they_are_said_to(moments):
    cross, power = moments("commuting")
    np.testing.assert_allclose(cross.T @ cross @ power, power @ cross.T @ cross, atol=1e-14)
    cross, power = moments("general")
    assert np.abs(cross.T @ cross @ power - power @ cross.T @ cross).max() > 0.01
    np.testing.assert_array_equal(moments("whitened")[1], np.eye(len(cross)))


def test_each_mode_is_half_as_strong_as_the_one_before():
    task = halving_modes(samples=50, inputs=4, outputs=3, condition=2.0, seed=0)
    learned = np.linalg.lstsq(task.inputs, task.targets, rcond=None)[0]
    np.testing.assert_allclose(np.linalg.svd(learned, compute_uv=False), [1.0, 0.5, 0.25], rtol=1e-12)


def test_inputs_of_a_neuron_vary_along_the_axes_that_are_given():
    axes = np.eye(3)[:, :2]
    task = neuron_regression(np.array([1.0, 0.0, 5.0]), axes, samples=7, least_variance=0.5, seed=0)
    np.testing.assert_allclose(task.input_moment, np.diag([1.0, 0.5, 0.0]), atol=1e-14)
    np.testing.assert_allclose(task.targets, task.inputs[:, :1], atol=1e-14)


def test_a_map_of_norm_one_is_learned_from_inputs_of_falling_variance():
    task = unit_regression(3, 2, samples=8, least_variance=0.25, seed=0)
    np.testing.assert_allclose(task.input_moment, np.diag([1.0, 0.5, 0.25]), atol=1e-14)
    learned = np.linalg.lstsq(task.inputs, task.targets, rcond=None)[0]
    assert np.linalg.norm(learned, 2) == pytest.approx(1.0, rel=1e-12)


def test_orthogonal_data_have_targets_of_both_signs():
    task = relu_data("orthogonal", 4, seed=3)
    np.testing.assert_allclose(task.inputs @ task.inputs.T, np.diag(np.sum(task.inputs**2, axis=1)), atol=1e-14)
    assert np.sign(task.targets[:, 0]).tolist() == [1, -1, 1, -1]
