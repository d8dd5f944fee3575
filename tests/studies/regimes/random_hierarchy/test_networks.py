from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.studies.regimes.random_hierarchy.networks import (
    TREE,
    hidden_features,
    largest_eigenvalue,
    network,
    rescaled,
)
from dynascope.tasks import RandomHierarchy

NAMES = (TREE, "1 hidden layer", "3 hidden layers")


@pytest.fixture
def strings():
    hierarchy = RandomHierarchy()
    return hierarchy.strings(np.random.default_rng(0).integers(hierarchy.number_of_strings, size=6))


def test_the_tree_applies_the_same_weights_to_every_tuple(strings):
    tree = network(TREE, RandomHierarchy(), 5, seed=1)
    first, second, third, last = tree.network.weights
    inputs = (RandomHierarchy().encode(strings).reshape(6, -1) - 1 / 4) * 4 / np.sqrt(3)
    relu = lambda z: np.maximum(z, 0)  # noqa: E731
    for x, output in zip(inputs, np.asarray(tree(strings)), strict=True):
        tuples = [relu(x[k : k + 8] @ first) for k in range(0, 32, 8)]
        pairs = [relu(np.concatenate(tuples[k : k + 2]) @ second) for k in (0, 2)]
        assert output == pytest.approx(relu(np.concatenate(pairs) @ third) @ last, rel=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_relative_scale_preserves_the_initial_outputs(name, strings):
    start = network(name, RandomHierarchy(), 8, seed=0)
    outputs = np.asarray(rescaled(start, 1.0)(strings))
    assert np.asarray(rescaled(start, 4.0)(strings)) == pytest.approx(outputs, rel=1e-4, abs=1e-6)
    assert rescaled(start, 4.0).network.weights[0] == pytest.approx(start.network.weights[0] / 4, rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_last_features_determine_the_outputs(name, strings):
    start = rescaled(network(name, RandomHierarchy(), 8, seed=0), 1.0)
    features = hidden_features(start, strings)
    assert len(features) == {"1 hidden layer": 1}.get(name, 3)
    assert features[-1] @ start.network.weights[-1] == pytest.approx(np.asarray(start(strings)), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_largest_eigenvalue_is_that_of_the_jacobians(name, strings):
    start = rescaled(network(name, RandomHierarchy(), 8, seed=0), 2.0)
    jacobians = jax.tree.leaves(jax.jacrev(lambda each: each(strings))(start))
    rows = np.concatenate([np.asarray(each).reshape(24, -1) for each in jacobians], axis=1)
    assert largest_eigenvalue(start, strings) == pytest.approx(np.linalg.norm(rows, 2) ** 2 / 6, rel=1e-3)
