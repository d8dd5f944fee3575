from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy.linalg import expm

from dynascope.compilation import jit
from dynascope.networks import MLP, TwoLayer
from dynascope.prediction.ntk_modes import tangent_modes

DRAW = np.random.default_rng(0)
X, Y = DRAW.normal(size=(12, 3)), DRAW.normal(size=(12, 2))
TIMES = np.array([0.0, 0.3, 2.0])


class Opaque(eqx.Module):
    """A network of which nothing is known but what it computes."""

    inner: TwoLayer

    def __call__(self, x):
        return self.inner(x)


def linearised(network, x, y):
    """L and the movement by the flow of θ itself, with the Jacobian of JAX."""

    def outputs(weights):
        found = eqx.tree_at(lambda net: net.weights, network, weights)(x)
        return found, found

    with jax.enable_x64(True):
        parts, found = jit(jax.jacrev(outputs, has_aux=True))(network.weights)
    jacobian = np.concatenate([np.reshape(part, (y.size, -1)) for part in parts], axis=1)
    residual = (np.asarray(found) - y).ravel()
    losses = []
    for time in TIMES:
        decay = expm(-jacobian @ jacobian.T / len(x) * time)
        losses.append(np.sum((decay @ residual) ** 2) / len(x) / 2)
    return np.array(losses)


@pytest.mark.parametrize("width", [2, 9])  # fewer weights than outputs of samples, and more
def test_the_loss_is_that_of_the_linear_flow(width):
    network = MLP((3, width, 2), activation="linear", bias=False, seed=1)
    modes = tangent_modes(network, X, Y)
    np.testing.assert_allclose(modes.loss(TIMES), linearised(network, X, Y), rtol=1e-9)
    assert modes.movement(0.0) == 0
    assert 0 < modes.movement(1.0) < modes.movement(2.0)


@pytest.mark.parametrize("activation", ["relu", "quadratic", "leaky-relu--0.2", "power-3", "linear"])
def test_the_closed_form_of_two_layers_is_what_jax_finds(activation):
    network = TwoLayer(3, 5, 2, activation=activation)
    ours, theirs = tangent_modes(network, X, Y), tangent_modes(Opaque(network), X, Y)
    np.testing.assert_allclose(ours.loss(TIMES), theirs.loss(TIMES), rtol=1e-8)
    assert ours.weights == pytest.approx(theirs.weights)
    assert ours.movement(2.0) == pytest.approx(theirs.movement(2.0), rel=1e-6)


def test_blocks_change_rounding_only(monkeypatch):
    network = TwoLayer(3, 40, 2, activation="relu")
    few = TwoLayer(3, 2, 2, activation="relu")
    whole = [tangent_modes(each, X, Y).loss(TIMES) for each in (network, few)]
    monkeypatch.setattr("dynascope.prediction.ntk_modes.BLOCK", 5 * 2 * network.first.size)
    parts = [tangent_modes(each, X, Y).loss(TIMES) for each in (network, few)]
    np.testing.assert_allclose(parts, whole, rtol=1e-10)


def test_what_no_weight_reaches_stays():
    network = TwoLayer(3, 1, 2, activation="linear")
    modes = tangent_modes(network, X, Y)
    assert modes.rest > 0.1
    assert modes.loss(np.array([1e12]))[0] == pytest.approx(modes.rest / 2)
