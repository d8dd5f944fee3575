"""A prediction says where units decide it."""

from __future__ import annotations

import numpy as np
import pytest

from dynascope import predict
from dynascope.prediction.unit_dependence import spreads_of
from dynascope.tasks import InContextRegression, Task

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(40, 3))
NAMES = ("proline", "ash", "hue")


def warnings(task, kind="linear") -> list[str]:
    told = predict(task, kind, scale=1e-8, curve=False).record.attrs["warnings"]
    return [each for each in told if "standard deviations" in each]


def test_columns_in_far_smaller_units_are_named():
    task = Task(X / X.std(axis=0) * [300.0, 0.125, 4.0], X[:, :1], feature_names=NAMES)
    (told,) = warnings(task)
    assert all(each in told for each in ("2400", "300 for 'proline'", "0.125 for 'ash'", "standardising"))
    assert warnings(task.standardised()) == warnings(task.whitened()) == []


@pytest.mark.parametrize("factor", [99.0, 101.0])
def test_a_factor_of_a_hundred_is_far(factor):
    assert len(warnings(Task(X / X.std(axis=0) * [factor, 1.0, 1.0], X[:, :1]))) == (factor > 100)


def test_targets_have_units_too():
    y = np.stack([1000 * X[:, 0], X[:, 1]], axis=1)
    (told,) = warnings(Task(X, y, target_names=("price", "age")))
    assert "'price'" in told


def test_constant_columns_and_pixels_have_none():
    x = np.hstack([X, np.ones((40, 1))])
    assert warnings(Task(x, X[:, :1])) == []
    assert warnings(Task(x * [1.0, 1e-4, 1.0, 1.0], X[:, :1], image_shape=(2, 2))) == []


def test_inputs_in_context_have_units():
    task = InContextRegression([1.0, 1e-5], 20, feature_names=("a", "b"))
    np.testing.assert_allclose(spreads_of(task), [1.0, 1e-5**0.5])
    (told,) = warnings(task, "attention")
    assert "1 for 'a', 0.00316 for 'b'" in told
