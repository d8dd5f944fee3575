from __future__ import annotations

import numpy as np

from dynascope.tasks.random_maps import covariance, random_map, relu_teacher, rotation, whitened


def test_rotations_are_not_mirrored():
    draw = np.random.default_rng(0)
    for dimension in (1, 2, 5):
        turn = rotation(draw, dimension)
        np.testing.assert_allclose(turn @ turn.T, np.eye(dimension), atol=1e-14)
        assert np.isclose(np.linalg.det(turn), 1)


def test_maps_and_covariances_have_the_strengths_and_variances_that_are_given():
    draw = np.random.default_rng(1)
    strengths = np.array([3.0, 1.0])
    np.testing.assert_allclose(np.linalg.svd(random_map(draw, 2, 4, strengths), compute_uv=False), strengths)
    assert np.linalg.det(random_map(draw, 2, 2, strengths)) > 0
    np.testing.assert_allclose(np.linalg.eigvalsh(covariance(draw, 3, 4.0)), [0.25, 0.5, 1.0])


def test_whitened_tasks_have_exactly_the_map_that_is_given():
    target = np.arange(6.0).reshape(3, 2)
    task = whitened(target, "a task")
    np.testing.assert_allclose(task.input_moment, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(task.cross_moment.T, target, atol=1e-13)
    assert task.name == "a task"


def test_targets_of_a_teacher_have_at_most_as_many_directions_as_it_has_neurons():
    task = relu_teacher(np.random.default_rng(2), 20, 5, 2, 4)
    assert (task.inputs.shape, task.targets.shape) == ((20, 5), (20, 4))
    assert np.linalg.matrix_rank(task.targets) == 2
