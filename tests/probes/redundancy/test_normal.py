from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.networks import MLP
from dynascope.probes.redundancy import UnitGroup, normal_hessians
from dynascope.theory import SGD
from dynascope.theory.noise import step_matrices

GROUP = UnitGroup(4, [("weights.0", 1)], [("weights.1", 0)])
RANDOM = np.random.default_rng(0)
X, Y = RANDOM.normal(size=(3, 5, 3)), RANDOM.normal(size=(3, 5, 2))


def squared_loss(network, x, y):
    return jnp.mean(jnp.sum((network(x) - y) ** 2, axis=-1)) / 2


@functools.cache
def near_a_set(activation):
    """A network of which unit 1 nearly vanishes, or units 0 and 2 are nearly equal, and its Hessians."""
    network = MLP((3, 4, 2), activation=activation, bias=False, seed=2)
    w, a = (np.array(each) for each in network.weights)
    if activation == "relu":
        w[:, 1] *= 1e-6
        a[1] *= 1e-6
    else:
        w[:, 2], a[2] = w[:, 0] + 1e-6, a[0]
    network = jax.tree.unflatten(jax.tree.structure(network), [w, a])
    with jax.enable_x64(True):
        found = normal_hessians(squared_loss, network, (X, Y), GROUP, [1, (0, 2)])
    return network, found


def test_a_small_relu_unit_couples_its_weights_through_the_residual():
    network, found = near_a_set("relu")
    w = network.weights[0][:, 1]
    for x, y, hessian in zip(X, Y, found[0], strict=True):
        residual = np.maximum(x @ network.weights[0], 0) @ network.weights[1] - y
        coupling = (x * (x @ w > 0)[:, None]).T @ residual / len(x)
        expected = np.block([[np.zeros((3, 3)), coupling], [coupling.T, np.zeros((2, 2))]])
        # What is left is of the square of the size of the unit.
        np.testing.assert_allclose(hessian, expected, atol=1e-10)


def test_a_step_moves_equal_units_apart_as_the_hessian_says():
    network, found = near_a_set("tanh")
    w, a = network.weights
    apart = np.concatenate([w[:, 0] - w[:, 2], a[0] - a[2]])
    for x, y, matrix in zip(X, Y, step_matrices(found[1], SGD(0.1)), strict=True):
        h = np.tanh(x @ w)
        residual = (h @ a - y) / len(x)
        new_w, new_a = w - 0.1 * x.T @ (residual @ a.T * (1 - h**2)), a - 0.1 * h.T @ residual
        moved = np.concatenate([new_w[:, 0] - new_w[:, 2], new_a[0] - new_a[2]])
        # To the first order of a distance of 1e-6.
        np.testing.assert_allclose(moved, matrix @ apart, atol=1e-11)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_little_of_the_distance_is_the_set_that_is_approached(activation):
    network, found = near_a_set(activation)
    w, a = (np.array(each) for each in network.weights)
    if network.activation == "relu":
        w[:, 1], a[1] = 1e6 * w[:, 1], 1e6 * a[1]
    else:
        # The mean of both units stays.
        w[:, [0, 2]] += np.outer(np.ones(3), [0.1, -0.1])
    far = jax.tree.unflatten(jax.tree.structure(network), [w, a])
    with jax.enable_x64(True):
        near = normal_hessians(squared_loss, far, (X, Y), GROUP, [1, (0, 2)], kept=1e-6)
    place = 0 if network.activation == "relu" else 1
    np.testing.assert_allclose(near[place], found[place], atol=1e-5)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_hessians_are_symmetric_and_one_for_each_set_and_batch(activation):
    _, found = near_a_set(activation)
    assert found.shape == (2, 3, 5, 5)
    np.testing.assert_allclose(found, np.swapaxes(found, -1, -2), atol=1e-13)


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"sets": []}, "sets"),
        ({"sets": [4]}, "sets"),
        ({"sets": [(1, 1)]}, "sets"),
        ({"batches": (X, Y[:2])}, "batches"),
        ({"group": UnitGroup(5, [("weights.0", 1)], [("weights.1", 0)])}, "group"),
    ],
)
def test_bad_input_is_refused_by_name(changes, argument):
    arguments = {"batches": (X, Y), "group": GROUP, "sets": [0], **changes}
    with pytest.raises(InputError) as caught:
        normal_hessians(squared_loss, MLP((3, 4, 2), bias=False), **arguments)
    assert caught.value.argument == argument
