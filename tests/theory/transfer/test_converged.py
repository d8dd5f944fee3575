"""Derivatives of the layers of a converged network, against differences between neighbours."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.theory.transfer import converged_layers, forgetting, joint_transfer

STEP = 1e-4
RANDOM = np.random.default_rng(5).normal(size=(3, 4))
# Map and width: distinct, equal, nearly equal, missing and no strengths; bottlenecks, and more inputs or outputs.
MAPS = {
    "distinct": (np.array([[2.0, 0.3], [0.1, 1.0]]), 2),
    "equal": (np.eye(3), 3),
    "nearly equal": (np.diag([1.0, 1.0 + 1e-9, 1.0 - 1e-5]), 3),
    "two equal": (np.diag([2.0, 1.0, 1.0]), 3),
    "bottleneck": (np.diag([2.0, 2.0, 1.0]), 2),
    "rank one": (np.diag([1.0, 0.0, 0.0]), 3),
    "equal and missing": (np.diag([1.0, 1.0, 0.0]), 3),
    "no map": (np.zeros((2, 2)), 2),
    "more outputs": (RANDOM, 3),
    "more inputs": (RANDOM.T, 3),
}
WIDER = {"more outputs than modes": (RANDOM, 4, 0.7), "more inputs than modes": (RANDOM.T, 4, -0.7)}
CASES = [(*case, balance) for case in MAPS.values() for balance in (-0.7, 0.5, 20.0)] + list(WIDER.values())


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def invariant(target_map, balance, width):
    """A sum of all that no rotation of the hidden neurons changes, with weights of no symmetry."""
    first, second = converged_layers(target_map, balance, width)
    parts = [first @ first.T, first @ second, second.T @ second]
    flat = jnp.concatenate([jnp.ravel(part) for part in parts])
    return flat @ np.cos(1.0 + np.arange(flat.size) ** 2)


def slope(function, place, way):
    """The derivative along a way, by differences of fourth order."""
    near, far = (
        function(*(one + by * STEP * other for one, other in zip(place, way, strict=True)))
        - function(*(one - by * STEP * other for one, other in zip(place, way, strict=True)))
        for by in (1, 2)
    )
    return float(8 * near - far) / (12 * STEP)


def along(gradient, way):
    return sum(float(np.sum(one * other)) for one, other in zip(gradient, way, strict=True))


@pytest.mark.parametrize(("target_map", "width", "balance"), CASES)
def test_what_no_rotation_changes_has_the_derivative_of_its_neighbours(target_map, width, balance):
    random = np.random.default_rng(2)
    place, way = (target_map, balance), (random.normal(size=target_map.shape), random.normal())

    def function(*place):
        return invariant(*place, width)

    expected = slope(function, place, way)
    gradient = jax.grad(function, argnums=(0, 1))(*place)
    # Strengths of the order of λ: the error of the differences is the step to the fourth.
    assert along(gradient, way) == pytest.approx(expected, rel=1e-8, abs=1e-8)
    place, way = jax.tree.map(jnp.asarray, (place, way))
    assert float(jax.jvp(function, place, way)[1]) == pytest.approx(expected, rel=1e-8, abs=1e-8)
    compiled = jax.jit(jax.vmap(jax.grad(function, argnums=(0, 1)), in_axes=(None, 0)))(place[0], balance * np.ones(2))
    for one, other in zip(compiled, gradient, strict=True):
        np.testing.assert_allclose(one, np.stack([other, other]), atol=1e-12)


@pytest.mark.parametrize("target_map", [np.diag([2.0, 1.0]), np.eye(2), np.diag([2.0, 0.0])])
def test_forgetting_and_transfer_have_the_derivatives_of_their_neighbours(target_map):
    new, times = np.array([[1.0, 0.5], [-0.3, 2.0]]), np.array([0.3, 2.0])

    def errors(old, balance):
        layers = converged_layers(old, balance, 2)
        forgotten = forgetting(*layers, target_map, new, times, steps=4)
        return jnp.sum(forgotten.old_error) + joint_transfer(*layers, old, new, times, steps=6).new_error[0]

    place, way = (target_map, 0.5), (np.array([[0.3, -0.2], [0.5, 0.7]]), -0.4)
    gradient = jax.grad(errors, argnums=(0, 1))(*place)
    assert along(gradient, way) == pytest.approx(slope(errors, place, way), rel=1e-8)


def test_layers_of_different_strengths_and_changes_of_balance_have_derivatives():
    def total(target_map, balance):
        first, second = converged_layers(target_map, balance, 2)
        return first.sum() + 2 * second[0, 1] - second[1, 1]

    place, way = (np.array([[2.0, 0.3], [0.1, 1.0]]), 0.5), (np.array([[0.3, -0.2], [0.5, 0.7]]), -0.4)
    gradient = jax.grad(total, argnums=(0, 1))(*place)
    assert along(gradient, way) == pytest.approx(slope(total, place, way), rel=1e-8)
    by_balance = jax.grad(lambda balance: total(np.eye(2), balance))(0.5)
    assert by_balance == pytest.approx(slope(lambda balance: total(np.eye(2), balance), (0.5,), (1.0,)), rel=1e-8)


@pytest.mark.parametrize("target_map", [np.eye(2), np.zeros((2, 2)), np.eye(2) * (1 + 1e-12)])
@pytest.mark.parametrize(
    "quantity",
    [
        lambda first, second: first.sum(),
        lambda first, second: first[0, 0],
        lambda first, second: jnp.exp(first[0]).sum() + second.sum(),
    ],
)
def test_what_a_rotation_of_equal_modes_changes_is_rejected_by_name(target_map, quantity):
    def function(target_map):
        return quantity(*converged_layers(target_map, -0.5, 2))

    with pytest.raises(InputError, match="up to a rotation") as refusal:
        jax.grad(function)(target_map)
    assert refusal.value.argument == "target_map"
    assert np.isnan(jax.jit(jax.grad(function))(target_map)).all()


@pytest.mark.parametrize(
    ("target_map", "balance", "width", "argument"),
    [
        (np.diag([1.0, 0.0]), 0.0, 2, "target_map"),
        (np.diag([1.0, 0.0]), 0.0, 2, "balance"),
        (np.eye(2), 0.0, 3, "balance"),  # the third neuron has no λ other than 0
        (np.eye(2), 0.5, 1, "width"),  # one of two equal modes
    ],
)
def test_corners_and_limits_that_depend_on_the_start_are_rejected_by_name(target_map, balance, width, argument):
    place = {"target_map": target_map, "balance": balance}
    way = "balance" if argument == "balance" else "target_map"

    def function(value):
        return jnp.sum(converged_layers(**place | {way: value}, width=width)[0] ** 2)

    with pytest.raises(InputError) as refusal:
        jax.grad(function)(place[way])
    assert refusal.value.argument == argument
    assert np.isnan(jax.jit(jax.grad(function))(place[way])).all()


def test_a_full_map_has_a_derivative_in_the_map_at_balance_zero_whatever_the_width():
    way = np.array([[0.3, -0.2], [0.5, 0.7]])
    for width in (2, 3):
        gradient = jax.grad(lambda target_map, width=width: invariant(target_map, 0.0, width))(np.eye(2))
        expected = slope(lambda target_map, width=width: invariant(target_map, 0.0, width), (np.eye(2),), (way,))
        assert along((gradient,), (way,)) == pytest.approx(expected, rel=1e-8)


def test_gradients_that_are_nothing_but_rounding_are_not_rejected():
    def late(target_map):
        layers = converged_layers(target_map, 0.5, 2)
        return forgetting(*layers, np.eye(2), np.diag([1.0, 2.0]), np.array([50.0]), steps=100).old_error[0]

    np.testing.assert_allclose(jax.grad(late)(np.eye(2)), 0, atol=1e-12)


@pytest.mark.parametrize("place", [0, 1])
def test_second_derivatives_are_rejected(place):
    with pytest.raises(InputError, match="differentiated twice") as refusal:
        jax.hessian(invariant, argnums=place)(np.diag([2.0, 1.0]), 0.5, 2)
    assert refusal.value.argument == ("target_map", "balance")[place]
