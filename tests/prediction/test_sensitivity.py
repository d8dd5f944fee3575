from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from dynascope.networks import NeuronSum
from dynascope.prediction.sensitivity import sensitivity

INPUTS = np.random.default_rng(0).normal(size=(40, 3)) * np.array([1.0, 10.0, 1.0])


def of(neuron, weights=(1.0, 1.0)):
    network = NeuronSum(np.ones((2, 2)), neuron, degree=1)
    return sensitivity(network, np.array(weights), INPUTS)


def test_an_input_counts_by_its_slope_and_its_spread():
    parts, moved = of(lambda w, x: w[0] * x[:, :1] + 0.1 * w[1] * x[:, 1:2])
    spreads = INPUTS.std(axis=0)
    expected = np.array([spreads[0], 0.1 * spreads[1], 0.0])
    # Single precision.
    np.testing.assert_allclose(parts, expected / np.linalg.norm(expected), rtol=1e-5)
    assert moved.tolist() == [1.0]


def test_an_input_counts_whichever_way_it_moves_the_answer():
    parts, _ = of(lambda w, x: w[0] * x[:, 2:] ** 2)
    np.testing.assert_allclose(parts, [0.0, 0.0, 1.0], atol=1e-6)


def test_outputs_are_moved_by_the_spread_of_the_answer():
    _, moved = of(lambda w, x: jnp.concatenate([3 * w[0] * x[:, :1], 4 * w[0] * x[:, :1], 0 * x[:, :1] + 7], axis=1))
    np.testing.assert_allclose(moved, [0.6, 0.8, 0.0], atol=1e-5)


def test_a_neuron_that_says_nothing_or_nothing_finite_depends_on_nothing():
    for neuron in (lambda w, x: 0 * x[:, :1], lambda w, x: jnp.inf * x[:, :1]):
        parts, moved = of(neuron)
        assert not parts.any()
        assert not moved.any()
