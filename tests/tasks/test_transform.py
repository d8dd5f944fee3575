from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.tasks import Task, Transform

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(40, 3)) * [1.0, 50.0, 0.01] + [0.0, 100.0, 3.0]
TASK = Task(X, X @ DRAW.normal(size=(3, 2)) + 7, feature_names=("age", "height", "dose"), target_names=("a", "b"))
WAYS = {
    "centred": lambda task: task.centred(),
    "standardised": lambda task: task.standardised(),
    "whitened": lambda task: task.whitened(),
    "all": lambda task: task.centred().standardised().whitened(),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_task_knows_the_way_back_to_its_original_numbers(way):
    task = WAYS[way](TASK)
    assert isinstance(task.transform, Transform)
    assert task.transform.feature_names == TASK.feature_names
    np.testing.assert_allclose(task.transform.inputs.apply(TASK.inputs), task.inputs, atol=1e-10)
    np.testing.assert_allclose(task.transform.inputs.invert(task.inputs), TASK.inputs, atol=1e-10)
    np.testing.assert_allclose(task.transform.targets.invert(task.targets), TASK.targets, atol=1e-10)


@pytest.mark.parametrize("way", WAYS)
def test_a_network_of_the_task_is_a_function_of_original_inputs(way):
    task = WAYS[way](TASK)
    weights = np.linalg.lstsq(task.inputs, task.targets, rcond=None)[0]
    found = task.transform.original(lambda x: x @ weights)(TASK.inputs)
    expected = task.transform.targets.invert(task.inputs @ weights)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_weights_of_whitened_inputs_are_weights_of_original_ones():
    centred = TASK.centred()
    task = centred.whitened()
    weights, bias = task.transform.inputs.weights(task.cross_moment.T)
    # In whitened coordinates Σyx solves least squares, which the original inputs do exactly.
    np.testing.assert_allclose(TASK.inputs @ weights + bias, centred.targets, atol=1e-9)


def test_a_test_set_follows_its_training_set():
    train, test = TASK.split(test_fraction=0.25)
    moved = train.standardised()
    followed = moved.transform.apply(test)
    assert (followed.samples, followed.feature_names, followed.target_names) == (10, TASK.feature_names, ("a", "b"))
    expected = (test.inputs - train.inputs.mean(axis=0)) / train.inputs.std(axis=0)
    np.testing.assert_allclose(followed.inputs, expected, rtol=1e-10)
    np.testing.assert_allclose(followed.transform.targets.invert(followed.targets), test.targets)
    assert train.whitened().transform.apply(test).feature_names == ("x1", "x2", "x3")


def test_one_target_alone_keeps_its_way_back():
    task = TASK.standardised().only("b")
    np.testing.assert_allclose(task.transform.targets.invert(task.targets), TASK.targets[:, 1:])


def test_data_of_another_shape_are_refused():
    with pytest.raises(InputError, match="targets are 3 and 1, but the transform expects 3 and 2"):
        TASK.standardised().transform.apply(TASK.only("a"))


def test_a_task_as_it_was_given_has_no_transform():
    assert TASK.transform is None
