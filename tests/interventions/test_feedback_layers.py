from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.interventions import FeedbackConvolution, FeedbackDense, feedback_convolutional, feedback_mlp
from dynascope.interventions.feedback_network import FeedbackNetwork

IMAGES = np.random.default_rng(0).normal(size=(5, 8, 8, 1))
NETWORKS = {
    "dense": (feedback_mlp((64, 7, 6, 3), seed=1), IMAGES.reshape(5, 64)),
    "convolutional": (feedback_convolutional((8, 8), 3, channels=(3, 4), hidden=(5,), seed=1), IMAGES),
}


def loss(network, x):
    return jnp.sum(jnp.sin(network(x)))


def arrays(network):
    return [layer.weights for layer in network.layers] + [layer.bias for layer in network.layers]


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_equal_backpropagation_if_feedback_weights_equal_weights(name):
    network, x = NETWORKS[name]
    plain = network.with_backward([None] * len(network.layers))
    with jax.enable_x64(True):
        exact, through_weights, through_others = (
            jax.grad(loss)(each, x) for each in (plain, network.with_exact_feedback(), network)
        )
    for one, other in zip(arrays(exact), arrays(through_weights), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    assert np.abs(arrays(exact)[0] - arrays(through_others)[0]).max() > 0.1


@given(seed=st.integers(0, 2**31))
def test_errors_pass_through_the_transposed_feedback_weights(seed):
    draw = np.random.default_rng(seed)
    network = feedback_mlp((4, 3, 2), seed=seed)
    x, (first, last) = draw.normal(size=(5, 4)), network.layers
    with jax.enable_x64(True):
        found = jax.grad(lambda network: jnp.sum(network(x) ** 2) / 2)(network)
    z = x @ first.weights
    delta = np.maximum(z, 0) @ last.weights
    expected = x.T @ ((z > 0) * (delta @ last.backward.T))
    np.testing.assert_allclose(found.layers[0].weights, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.layers[1].weights, np.maximum(z, 0).T @ delta, rtol=1e-10, atol=1e-10)
    assert not np.any(found.layers[1].backward)


def test_convolutions_send_errors_back_by_correlation_with_the_feedback_kernel():
    draw = np.random.default_rng(3)
    kernel, backward = draw.normal(size=(2, 3, 3, 1, 1))
    layer, error = FeedbackConvolution(kernel, np.zeros(1), backward), draw.normal(size=(1, 4, 4, 1))
    with jax.enable_x64(True):
        found = jax.vjp(layer, np.zeros((1, 4, 4, 1)))[1](jnp.asarray(error))[0]
    padded = np.pad(error[0, :, :, 0], 1)
    expected = [[np.sum(padded[i : i + 3, j : j + 3] * backward[::-1, ::-1, 0, 0]) for j in range(4)] for i in range(4)]
    np.testing.assert_allclose(found[0, :, :, 0], expected, rtol=1e-12)


TIED = np.ones((3, 3))


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: FeedbackDense(np.ones((3, 2)), np.zeros(2), np.ones((2, 3))), "backward"),
        (lambda: FeedbackDense(np.ones((3, 2)), np.zeros(3)), "bias"),
        (lambda: FeedbackConvolution(np.ones((3, 3, 2, 4)), np.zeros(4), groups=2), "groups"),
        (lambda: FeedbackConvolution(np.ones((2, 2, 1, 1)), np.zeros(1)), "weights"),
        (lambda: FeedbackNetwork([FeedbackDense(TIED, np.zeros(3)), FeedbackDense(TIED, np.zeros(3))]), "layers"),
        (lambda: feedback_mlp((3, 2), activation="step"), "activation"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_rejected_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
