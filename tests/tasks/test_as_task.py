from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_wine

from dynascope.errors import InputError
from dynascope.tasks import InContextRegression, Task, as_task

X = np.random.default_rng(0).normal(size=(4, 2))


@pytest.mark.parametrize("task", [Task(X, X), InContextRegression([1.0, 0.5], 20)])
def test_a_task_stays_what_it_is(task):
    assert as_task(task) is task


@pytest.mark.parametrize("pair", [(X, X[:, 0]), [X, X[:, 0]], (pd.DataFrame(X), pd.Series(X[:, 0]))])
def test_the_numbers_of_a_pair_stay_as_they_are(pair):
    task = as_task(pair)
    np.testing.assert_array_equal(task.inputs, X)
    np.testing.assert_array_equal(task.targets, X[:, :1])


def test_the_numbers_of_a_data_set_of_scikit_learn_stay_as_they_are():
    wine = load_wine()
    task = as_task(wine)
    np.testing.assert_array_equal(task.inputs, wine.data)
    np.testing.assert_array_equal(task.targets.argmax(axis=1), wine.target)
    assert (task.name, task.feature_names) == ("wine", tuple(wine.feature_names))
    assert as_task(load_digits()).image_shape == (8, 8)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("wine.csv", r"the task has type str: read the file with read_table"),
        (Path("wine.csv"), r"read the file with read_table"),
        (pd.DataFrame(X), r"the task has type DataFrame: specify the target columns .*read_table"),
        ({"a": [1.0]}, r"the task has type dict: specify the target columns .*read_table"),
        (X, r"the task has type ndarray"),
        ((X,), "the task has type tuple"),
        (Task, "the task has type type"),
        (None, "the task has type NoneType"),
    ],
)
def test_what_makes_no_task_is_refused(data, problem):
    with pytest.raises(InputError, match=problem) as caught:
        as_task(data)
    assert caught.value.argument == "task"
