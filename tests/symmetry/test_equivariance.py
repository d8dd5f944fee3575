from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.linalg import expm
from symmetry.zoo import A1, attention, attention_loss, wave

from dynascope.errors import InputError
from dynascope.symmetry import Charge, Part, equivariance, find_symmetries
from dynascope.training import bbi, ecd, ecdsep, soap

TOKENS = wave(np.sin, 0.8, 4, 3)
HEAD = {name: A1[name] for name in "QKVO"}


@functools.cache
def scores():
    """The matrix symmetry of queries and keys."""
    return find_symmetries(attention, HEAD, TOKENS).symmetries[0]


def rotation(size, seed=0):
    entries = np.random.default_rng(seed).normal(size=(size, size))
    return expm(entries - entries.T)


def gram(shape):
    """A loss of WᵀW, the weights, and a rotation of the rows of W."""
    random, turn = np.random.default_rng(1), rotation(shape[0])
    target = random.normal(size=(shape[1], shape[1]))
    return lambda w: jnp.mean((w.T @ w - target @ target.T) ** 2), random.normal(size=shape), lambda w: turn @ w


EXACT = {
    "gradient descent": optax.sgd(0.1),
    "heavy ball": optax.sgd(0.1, momentum=0.9),
    "ECD": ecd(0.1, eta=20.0),
    "ECD with the Euler kick": ecd(0.1, eta=20.0, kick="euler"),
    "ECDSep": ecdsep(0.05),
    "BBI": bbi(0.05),
}


@pytest.mark.parametrize("name", EXACT)
def test_optimisers_of_inner_products_commute_with_rotations_of_queries_and_keys(name):
    found = equivariance(EXACT[name], attention_loss, HEAD, scores())
    assert found.distance.shape == (50,)
    assert found.distance.max() < 1e-10
    assert found.holds
    # Both runs train, with the same losses.
    np.testing.assert_allclose(*found.losses, rtol=1e-10)
    assert found.losses[0, -1] < found.losses[0, 0]


@pytest.mark.parametrize(
    "optimizer", [optax.adam(0.01), optax.lion(0.001), optax.rmsprop(0.01)], ids=["Adam", "Lion", "RMSProp"]
)
def test_coordinatewise_optimisers_do_not(optimizer):
    found = equivariance(optimizer, attention_loss, HEAD, scores())
    assert 0.1 < found.distance.max() < 2
    assert not found.holds


def test_soap_commutes_if_its_eigenvectors_are_determined():
    given = gram((2, 2))
    assert equivariance(soap(0.01, basis="eigh", every=1, eps=1e-4), *given).distance.max() < 1e-9
    assert equivariance(soap(0.01), *given).holds
    # Of two rows with five columns, the second moments have a null space.
    assert equivariance(soap(0.01, basis="eigh", every=1), *gram((2, 5))).distance.max() > 1e-2


def test_adam_commutes_with_permutations_and_signs():
    loss, weights, _ = gram((3, 2))
    signed = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    assert equivariance(optax.adam(0.01), loss, weights, lambda w: signed @ w).distance.max() < 1e-10


def test_translations_are_shifts():
    params = {"W": wave(np.sin, 0.7, 3, 2)}
    symmetry = find_symmetries(lambda p, x: jax.nn.log_softmax(x @ p["W"]), params, wave(np.cos, 0.4, 5, 3)).symmetries
    (shift,) = symmetry

    def loss(p):
        return -jnp.sum(jax.nn.log_softmax(wave(np.cos, 0.4, 5, 3) @ p["W"])[:, 0])

    assert equivariance(optax.adam(0.01), loss, params, shift).holds
    assert not equivariance(optax.adamw(0.01, weight_decay=0.1), loss, params, shift).holds


def test_symmetries_beside_constants_are_rotations_too():
    bias = np.array([0.5, 0.4, -0.2])
    random = np.random.default_rng(0)
    params = {name: random.normal(size=(3, 4)) / 2 for name in "QK"}
    tokens = random.normal(size=(5, 4))

    def apply(p, x, learned=0.0):
        return jax.nn.softmax((x @ p["Q"].T + bias + learned) @ (x @ p["K"].T).T)

    def loss(p):
        return jnp.sum(apply(p, tokens, p.get("b", 0.0))[:, 0] ** 2)

    (residual,) = find_symmetries(apply, params, tokens).symmetries
    assert equivariance(optax.sgd(0.1, momentum=0.9), loss, params, residual).distance.max() < 1e-10
    learned = params | {"b": np.zeros(3)}
    (affine,) = find_symmetries(lambda p, x: apply(p, x, p["b"]), learned, tokens).affine
    assert equivariance(optax.sgd(0.1, momentum=0.9), loss, learned, affine).distance.max() < 1e-8
    assert not equivariance(optax.adam(0.01), loss, learned, affine).holds


def test_before_the_first_displacement_the_distance_is_zero():
    found = equivariance(soap(0.01), *gram((2, 2)), steps=3)  # its first call makes no step
    assert found.distance[0] == 0 < found.distance[1]


RELU = Charge("rescale", (Part("[0]", np.array([[0, 1]]), -1.0), Part("[1]", np.array([[0], [1]]), 1.0)), 2)
_LOSS, _WEIGHTS, _TURN = gram((2, 2))


@pytest.mark.parametrize(
    ("changed", "argument", "words"),
    [
        ({"optimizer": 0.1}, "optimizer", "GradientTransformation"),
        ({"optimizer": optax.sgd(1e6)}, "optimizer", "not finite after step"),
        ({"optimizer": ecd(0.1, target_loss=1e9)}, "optimizer", "target_loss"),
        (
            {"optimizer": ecd(0.1), "params": np.ones(()), "loss": jnp.square, "symmetry": jnp.negative},
            "params",
            "single",
        ),
        ({"loss": 1.0}, "loss", "function"),
        ({"loss": lambda w: w}, "loss", "one real number"),
        ({"loss": lambda w: w["a"]}, "loss", "fails"),
        ({"loss": lambda w: jnp.sum(w) * jnp.inf}, "loss", "finite"),
        ({"params": np.array([[np.nan, 1.0], [0.0, 1.0]])}, "params", "finite"),
        ({"params": np.eye(2, dtype=int)}, "params", "floating-point"),
        ({"symmetry": lambda w: 2 * w}, "symmetry", "changes the loss from"),
        ({"symmetry": lambda w: w[0]}, "symmetry", "shapes"),
        ({"symmetry": RELU}, "symmetry", "no rotation"),
        ({"symmetry": 3}, "symmetry", "a Charge"),
        ({"steps": 0}, "steps", "at least"),
    ],
)
def test_bad_input_is_refused_by_name(changed, argument, words):
    given = {"optimizer": optax.sgd(0.01), "loss": _LOSS, "params": _WEIGHTS, "symmetry": _TURN} | changed
    with pytest.raises(InputError, match=words) as caught:
        equivariance(**given)
    assert caught.value.argument == argument
