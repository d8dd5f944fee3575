from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.networks import MLP
from dynascope.probes.kernel import neural_tangent_kernel
from dynascope.studies.regimes.lazy_rich_features.training import expand, measures, train

DRAW = np.random.default_rng(0)
INPUTS, OTHERS, TARGETS = DRAW.normal(size=(8, 3)), DRAW.normal(size=(5, 3)), DRAW.normal(size=(8, 2))
POINTS = np.concatenate([INPUTS, OTHERS])
NETWORKS = [MLP((3, 6, 2), activation="tanh", seed=seed) for seed in (1, 2)]
STEPS, RATE = np.array([0, 3, 40]), 0.2


@pytest.fixture(scope="module")
def expansion():
    return expand(NETWORKS, INPUTS, TARGETS, OTHERS, STEPS, learning_rate=RATE)


@jit
def tangent(network, points):
    return neural_tangent_kernel(lambda each, x: each(x), network, points, jnp.asarray(INPUTS)).values


def kernel(network):
    """The tangent kernel of all points and the inputs, over pairs of a sample and an output."""
    with jax.enable_x64(True):
        found = tangent(jax.tree.map(jnp.asarray, network), jnp.asarray(POINTS))
        return np.asarray(found).reshape(len(POINTS) * 2, len(INPUTS) * 2)


@pytest.mark.slow
def test_the_first_order_is_descent_with_the_kernel_of_the_start(expansion):
    for network, first in zip(NETWORKS, expansion.first, strict=True):
        everywhere = kernel(network) * RATE / len(INPUTS)
        outputs, missed = np.zeros(len(POINTS) * 2), TARGETS.ravel()
        for step in range(STEPS[-1] + 1):
            if step in STEPS:
                found = first[list(STEPS).index(step)]
                np.testing.assert_allclose(found, outputs.reshape(-1, 2), atol=1e-11)
            outputs = outputs + everywhere @ missed
            missed = TARGETS.ravel() - outputs[: TARGETS.size]


@pytest.mark.slow
def test_trained_networks_differ_from_two_orders_by_the_third(expansion):
    statistics = measures(INPUTS, OTHERS)

    def missing(divisor):
        run = train(NETWORKS, "all layers", INPUTS, TARGETS, STEPS, statistics, divisor=divisor, learning_rate=RATE)
        features = expansion.start + expansion.change / divisor
        movement = run.movement - expansion.movement / divisor
        return (
            np.abs(run.outputs - expansion.first - expansion.second / divisor).max(),
            np.abs(run.features - features).max(),
            np.abs(movement).max(),
        )

    # All three fall as the square of the divisor, and the next order is a few hundredths of what is left.
    np.testing.assert_allclose(np.divide(missing(300.0), missing(3000.0)), 100, rtol=0.05)


@pytest.mark.slow
def test_the_linear_order_and_the_last_layer_are_linear_and_keep_their_features(expansion):
    for kind in ("linearised", "last layer only"):
        statistics = measures(INPUTS, OTHERS)
        one, other = (
            train(NETWORKS, kind, INPUTS, TARGETS, STEPS, statistics, divisor=divisor, learning_rate=RATE)
            for divisor in (1.0, 100.0)
        )
        np.testing.assert_allclose(one.outputs, other.outputs, atol=1e-12)
        np.testing.assert_array_equal(one.movement, 0)
        np.testing.assert_allclose(one.features, expansion.start, atol=1e-14)
        if kind == "linearised":
            np.testing.assert_allclose(one.outputs, expansion.first, atol=1e-12)
