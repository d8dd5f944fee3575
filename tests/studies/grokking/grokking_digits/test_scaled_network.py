from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import optax
import pytest

from dynascope.compilation import jit
from dynascope.networks import MLP
from dynascope.studies.grokking.grokking_digits.scaled_network import (
    STATISTICS,
    ScaledError,
    accuracy,
    adam_with_decay,
    unravelled,
)


def scaled(*, target=1.0, input=1.0, output=1.0, decay=0.0, rate=1.0):
    network = MLP((3, 4, 2), activation="tanh", seed=2)
    rates, decays, epsilons = (jax.tree.map(lambda leaf, value=value: value, network) for value in (rate, decay, 1e-8))
    return ScaledError(network, rates, decays, epsilons, target, input, output)


def test_factors_scale_inputs_outputs_and_targets():
    draw = np.random.default_rng(0)
    inputs, targets = draw.normal(size=(7, 3)), draw.normal(size=(7, 2))
    whole = scaled(target=3.0, input=0.5, output=2.0)
    pairs = np.concatenate([inputs, targets], axis=1)
    found, features = jit(lambda whole: (whole(pairs), whole.features(inputs)))(whole)
    plain, plain_features = jit(lambda network: (network(0.5 * inputs), network.features(0.5 * inputs)))(whole.network)
    np.testing.assert_allclose(found, 2.0 * np.asarray(plain) - 3.0 * targets, atol=1e-5)
    # In single precision, of numbers of order one.
    np.testing.assert_allclose(features, plain_features, atol=1e-6)


@pytest.mark.slow
def test_the_optimizer_is_adam_on_loss_and_weight_decay():
    draw = np.random.default_rng(1)
    whole = scaled(decay=0.1)
    ours, theirs = adam_with_decay(0.01), optax.chain(optax.add_decayed_weights(0.1), optax.adam(0.01))
    plain, state, other = whole.network, ours.init(whole), theirs.init(whole.network)

    @eqx.filter_jit
    def step(slopes, whole, state, plain, other):
        updates, state = ours.update(slopes, state, whole)
        expected, other = theirs.update(slopes.network, other, plain)
        return optax.apply_updates(whole, updates), state, optax.apply_updates(plain, expected), other

    for _ in range(5):
        slopes = jax.tree.map(lambda leaf: draw.normal(size=np.shape(leaf)), whole)
        whole, state, plain, other = step(slopes, whole, state, plain, other)
    for mine, leaf in zip(jax.tree.leaves(whole.network), jax.tree.leaves(plain), strict=True):
        # In single precision.
        np.testing.assert_allclose(mine, leaf, rtol=1e-5, atol=1e-7)
    assert (float(whole.decays.weights[0]), float(whole.target_scale)) == (pytest.approx(0.1), 1.0)


@pytest.mark.slow
def test_the_steps_of_an_array_scale_with_its_rate():
    slopes = jax.tree.map(lambda leaf: np.ones(np.shape(leaf)), scaled())
    ours = adam_with_decay(0.01)
    step = jit(lambda whole: ours.update(slopes, ours.init(whole), whole)[0].network.weights[0])
    one, quarter = (np.asarray(step(scaled(rate=rate))) for rate in (1.0, 0.25))
    np.testing.assert_allclose(quarter, 0.25 * one, rtol=1e-6)


@pytest.mark.slow
def test_rows_of_weights_become_networks():
    whole = jax.tree.map(np.asarray, scaled())
    (read, _), inputs = STATISTICS["weights"], np.random.default_rng(3).normal(size=(20, 3))
    weights, outputs = jax.device_get(jit(lambda whole: (read(whole), whole.outputs(inputs)))(whole))
    rows = np.stack([weights, 2 * weights])
    networks = unravelled(whole, rows)
    for leaf, original in zip(jax.tree.leaves(networks.network), jax.tree.leaves(whole.network), strict=True):
        np.testing.assert_allclose(leaf, np.stack([original, 2 * original]), rtol=1e-6)
    classes = outputs.argmax(axis=1)
    assert accuracy(networks, inputs, np.eye(2)[classes])[0] == 1.0
    assert accuracy(networks, inputs, np.eye(2)[1 - classes])[0] == 0.0
