from __future__ import annotations

import numpy as np
import pytest

from dynascope.tasks import Task

X = np.array([[1.0, 200.0], [2.0, 100.0], [4.0, 700.0], [5.0, 400.0]])
QUANTITY = np.array([[10.0], [30.0], [70.0], [50.0]])
CLASSES = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])


def zero(x):
    return np.zeros((len(x), 1))


@pytest.mark.parametrize("targets", [QUANTITY, np.hstack([QUANTITY, QUANTITY[::-1] ** 2]), QUANTITY > 20])
def test_inputs_have_mean_0_and_spread_1(targets):
    task = Task(X, targets).standardised()
    np.testing.assert_allclose(task.inputs.mean(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(task.inputs.std(axis=0), 1)


def test_the_loss_of_a_quantity_reads_as_the_description_says():
    task, raw = Task(X, QUANTITY, target_names=("price",)).standardised(), Task(X, QUANTITY).centred()
    assert task.loss(zero) == pytest.approx(0.5)
    assert raw.loss(zero) == pytest.approx(500 * task.loss(zero))
    assert "500" in task.description[-1]
    assert "'price'" in task.description[-1]


def test_each_of_several_quantities_counts_the_same():
    task = Task(X, np.hstack([QUANTITY, 1000 * QUANTITY[::-1]])).standardised()
    assert task.loss(zero) == pytest.approx(1.0)
    assert "0.5" in task.description[-1]


@pytest.mark.parametrize("targets", [CLASSES, CLASSES[:, :1], CLASSES - 0.25])
def test_class_labels_keep_their_units(targets):
    task = Task(X, targets).standardised()
    np.testing.assert_allclose(task.targets, targets - targets.mean(axis=0))


def test_one_may_say_that_a_target_of_two_values_is_a_quantity():
    np.testing.assert_allclose(Task(X, CLASSES[:, :1]).standardised(classes=False).targets.std(), 1)


def test_doing_it_twice_changes_and_says_nothing_more():
    once = Task(X, CLASSES).standardised()
    np.testing.assert_allclose(once.standardised().inputs, once.inputs, atol=1e-15)
    assert once.standardised().description == once.description
