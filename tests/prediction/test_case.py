from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.networks import MLP, DeepDiagonal, DeepLinear, DiagonalLinear, TwoLayer
from dynascope.prediction.case import Case
from dynascope.tasks import Task

X = np.random.default_rng(0).normal(size=(20, 3))
TASK = Task(X, X @ np.random.default_rng(1).normal(size=(3, 2)) + 0.3 * X[:, :2] ** 2)


def test_layers_are_those_of_linear_networks_at_their_scale():
    network = DeepLinear((3, 4, 2))
    first, second = Case(TASK, network, scale=0.1).layers
    np.testing.assert_allclose(first @ second, 0.01 * network.weights[0] @ network.weights[1])
    assert len(Case(TASK, MLP((3, 2), activation="linear", bias=False)).layers) == 1
    assert Case(TASK, MLP((3, 2))).layers is None  # it has a bias
    assert Case(TASK, TwoLayer(3, 4, 2, activation="relu")).layers is None


@pytest.mark.parametrize("width", [1, 2, 5])
def test_the_floor_is_the_loss_of_the_best_map_of_that_rank(width):
    # By reduced-rank regression: the best map, projected on its strongest fitted directions.
    best = np.linalg.lstsq(TASK.inputs, TASK.targets, rcond=None)[0]
    _, _, right = np.linalg.svd(TASK.inputs @ best, full_matrices=False)
    kept = best @ right[:width].T @ right[:width]
    expected = np.sum((TASK.inputs @ kept - TASK.targets) ** 2) / 2 / TASK.samples
    assert Case(TASK, TwoLayer(3, width, 2)).floor == pytest.approx(expected, rel=1e-9)


def test_networks_have_names_that_people_use():
    names = {
        "linear": TwoLayer(3, 4, 2),
        "relu": TwoLayer(3, 4, 2, activation="relu"),
        "diagonal": DiagonalLinear(3),
        "deep diagonal": DeepDiagonal(3, 3),
        "deep linear": DeepLinear((3, 3, 3, 2)),
        "MLP": MLP((3, 4, 2)),
    }
    assert {name: Case(TASK, network).kind for name, network in names.items()} == {name: name for name in names}


@pytest.mark.parametrize(("name", "value"), [("scale", 0.0), ("learning_rate", -1.0), ("batch_size", 0), ("jumps", 0)])
def test_bad_numbers_are_named(name, value):
    with pytest.raises(InputError) as caught:
        Case(TASK, TwoLayer(3, 4, 2), **{name: value})
    assert caught.value.argument == name
