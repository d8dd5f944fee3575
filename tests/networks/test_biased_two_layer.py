from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.networks import BiasedTwoLayer, TwoLayer
from dynascope.protocols import SumOfNeurons

POINTS = np.random.default_rng(0).normal(size=(7, 3))


def biased(outputs=2, *, hidden=True, seed=0):
    inner = TwoLayer(3 + hidden, 6, outputs, activation="relu", seed=seed)
    return BiasedTwoLayer(inner, np.arange(1.0, outputs + 1), has_hidden_biases=hidden)


@pytest.mark.parametrize("hidden", [True, False])
def test_the_outputs_are_those_of_layers_with_biases(hidden):
    network = biased(hidden=hidden)
    weights, biases = network.inner.first[:3], network.inner.first[3] if hidden else 0.0
    expected = np.maximum(POINTS @ weights + biases, 0) @ network.second + network.bias
    np.testing.assert_allclose(network(POINTS), expected)
    np.testing.assert_allclose(network(jnp.asarray(POINTS)), expected, rtol=1e-5)
    assert network.input_dimension == 3


@given(st.floats(0.1, 10.0), st.integers(0, 5))
def test_each_neuron_is_homogeneous_and_the_bias_is_not_part_of_it(factor, neuron):
    network = biased()
    rows = np.array(network.neurons)
    rows[neuron] *= factor
    chosen = np.eye(6)[neuron]
    before, after = (each.weighted(chosen)(POINTS) - network.bias for each in (network, network.with_neurons(rows)))
    np.testing.assert_allclose(after, factor**network.degree * before, atol=1e-12)
    assert isinstance(network, SumOfNeurons)


def test_hidden_biases_need_an_activation_of_degree_one():
    quadratic = TwoLayer(4, 6, 1, activation="quadratic")
    with pytest.raises(InputError, match="hidden neurons have biases, but the activation quadratic has degree 2"):
        BiasedTwoLayer(quadratic)
    assert BiasedTwoLayer(quadratic, np.zeros(1), has_hidden_biases=False).degree == 3
