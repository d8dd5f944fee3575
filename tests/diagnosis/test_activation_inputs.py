"""The inputs of activation functions are found in traced programs, with the examples first."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.diagnosis.activation_inputs import activation_inputs

X = jax.random.normal(jax.random.key(0), (5, 3))
W, V = jax.random.normal(jax.random.key(1), (3, 5)), jax.random.normal(jax.random.key(2), (5, 4))


def two_layers(x):
    return jax.nn.silu(jax.nn.relu(x @ W) @ V)


def check(found, expected):
    assert list(found) == list(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-6)


EXPECTED = {"relu": X @ W, "silu": jax.nn.relu(X @ W) @ V}


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.checkpoint, eqx.filter_jit])
def test_pre_activations_of_two_layers(wrap):
    check(activation_inputs(wrap(two_layers), X), EXPECTED)


@pytest.mark.parametrize("columns", [False, True])
def test_examples_come_first_after_vmap(columns):
    # W @ x under vmap has the examples along the last axis; here there are as many examples as units.
    def one(x):
        return jax.nn.relu(W.T @ x)

    apply = jax.vmap(one, in_axes=0, out_axes=1) if columns else jax.vmap(one)
    check(activation_inputs(apply, X), {"relu": X @ W})


def test_compiled():
    check(jax.jit(lambda x: activation_inputs(two_layers, x))(X), EXPECTED)


def test_repeated_calls_are_numbered():
    found = activation_inputs(lambda x: jax.nn.relu(jax.nn.relu(x) - 1) + jax.nn.relu(2 * x), X)
    assert list(found) == ["relu", "relu#2", "relu#3"]
    np.testing.assert_allclose(found["relu#3"], 2 * X)


def test_trees_of_inputs():
    found = activation_inputs(lambda x: jax.nn.relu(x["a"] + x["b"]), {"a": X, "b": 2 * X})
    np.testing.assert_allclose(found["relu"], 3 * X, rtol=1e-6)


def test_activations_that_do_not_depend_on_the_examples_are_omitted():
    assert activation_inputs(lambda x: x @ jax.nn.relu(W), X) == {}


@pytest.mark.parametrize("function", [jnp.tanh, lambda x: jnp.maximum(x, 0), jax.nn.log_softmax])
def test_other_functions_are_no_activations(function):
    assert activation_inputs(function, X) == {}
