from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import filter_jit, jit
from dynascope.networks import Convolutional
from dynascope.probes.kernel import neural_tangent_kernel
from dynascope.probes.kernel.contraction import forms_gradients
from dynascope.probes.kernel.dense_tracing import dense_uses
from dynascope.probes.kernel.model import split

DRAW = np.random.default_rng(0)
W, V, B = DRAW.normal(size=(4, 4)), DRAW.normal(size=(4, 3)), DRAW.normal(size=4)
X = DRAW.normal(size=(3, 4))
WORDS = DRAW.normal(size=(3, 2, 4))
IMAGES = DRAW.normal(size=(3, 6, 7, 2))
KERNEL = DRAW.normal(size=(3, 2, 2, 4))


@jax.custom_jvp
def clipped(w):
    return jnp.clip(w, -1, 1)


@clipped.defjvp
def _clipped_jvp(primals, tangents):
    return clipped(*primals), 2 * tangents[0]


def attention(p, x):
    scores = jax.nn.softmax((x @ p[0]) @ jnp.swapaxes(x @ p[0], 1, 2), axis=-1)
    return jnp.sum(scores @ x @ p[1], axis=1)


def strided(p, x):
    z = jax.lax.conv_general_dilated(
        x, p[0], (2, 1), [(1, 0), (0, 1)], rhs_dilation=(1, 2), dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return jnp.tanh(z).sum(axis=(1, 2)) @ p[1]


def looped(p, x):
    return jax.lax.scan(lambda h, _: (jnp.tanh(h @ p[0]), None), x, None, length=2)[0] @ p[1]


# Function, parameters, inputs, and which parameters are products alone, so that their gradients are never formed.
CASES = {
    "a layer and a bias": (lambda p, x: jnp.tanh(x @ p[0] + p[2]) @ p[1], (W, V, B), X, {0, 1}),
    "scaled, transposed and cast": (
        lambda p, x: jnp.tanh(x @ (-p[0] / 2).astype(x.dtype).T) @ (0.3 * p[1]),
        (W, V),
        X,
        {0, 1},
    ),
    "a learned factor": (lambda p, x: jnp.tanh(x @ (p[2][0] * p[0])) @ p[1], (W, V, B), X, {0, 1}),
    "the left operand": (lambda p, x: jax.vmap(lambda h: p[1].T @ jnp.tanh(p[0] @ h))(x), (W, V), X, {0, 1}),
    "inside a compiled function": (
        lambda p, x: jit(lambda w, h: jnp.tanh(h @ w.T))(p[0], x) @ p[1],
        (W, V),
        X,
        {0, 1},
    ),
    "inside a checkpoint": (
        lambda p, x: jax.checkpoint(lambda w, h: jnp.tanh(h @ w))(p[0], x) @ p[1],
        (W, V),
        X,
        {0, 1},
    ),
    "shared by two layers": (lambda p, x: jnp.tanh(x @ p[0]) @ p[0] @ p[1], (W, V), X, {0, 1}),
    "shared, once transposed": (lambda p, x: jnp.tanh(x @ p[0]) @ p[0].T @ p[1], (W, V), X, {1}),
    "also penalised": (lambda p, x: jnp.tanh(x @ p[0]) @ p[1] + jnp.sum(p[0] ** 2), (W, V), X, {1}),
    "multiplied with each other": (lambda p, x: x @ (p[0] @ p[1]), (W, V), X, set()),
    "masked": (lambda p, x: jnp.tanh(x @ (p[0] * np.tri(4))) @ p[1], (W, V), X, {1}),
    "with a derivative of its own": (lambda p, x: jnp.tanh(x @ clipped(p[0])) @ p[1], (W, V), X, {1}),
    "in a loop": (looped, (W, V), X, {1}),
    "unused": (lambda p, x: x @ p[1], (W, V), X, {1}),
    "attention": (attention, (W, V), WORDS, {0, 1}),
    "a strided convolution": (strided, (KERNEL, V), IMAGES, {0, 1}),
}


@filter_jit
def kernels(params, x, apply, algorithms):
    """By each algorithm; in one program, since operations one at a time would each be compiled."""
    return [neural_tangent_kernel(apply, params, x, algorithm=algorithm).values for algorithm in algorithms]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_any_function_has_the_kernel_of_its_jacobians(case):
    apply, params, x, dense = CASES[case]
    with jax.enable_x64(True):
        model, arrays = split(apply, params)
        assert {use.parameter for use in dense_uses(model, arrays, x[0])} == dense
        found, expected = kernels(params, x, apply, ("structured", "jacobian"))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.max(np.abs(expected)))


@pytest.mark.slow
def test_convolutional_networks_are_products_but_for_their_biases():
    network = Convolutional((4, 4), 2, channels=(3,), width=4)
    x = np.random.default_rng(0).normal(size=(4, 16))
    with jax.enable_x64(True):
        model, arrays = split(call, network)
        matrices = {i for i, each in enumerate(arrays[0]) if each.ndim > 1}
        assert {use.parameter for use in dense_uses(model, arrays, x[0])} == matrices
        found, expected = kernels(network, x, call, ("structured", "layerwise"))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.max(np.abs(expected)))


def call(network, x):
    return network(x)


@pytest.mark.slow
def test_gradients_are_formed_where_there_are_many_positions():
    assert not forms_gradients(1, 512, 512, 10, "full")
    assert not forms_gradients(2, 512, 512, 10, "full")
    assert forms_gradients(64, 9, 8, 10, "full")
    assert forms_gradients(2, 1, 2, 1, "full")
