import jax
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.networks import DiagonalLinear, LinearAttention, NeuronSum, TwoLayer
from dynascope.protocols import SumOfNeurons

INPUTS = np.random.default_rng(0).normal(size=(7, 3))
LAYERS = TwoLayer(3, 4, 2, activation="relu", seed=1)


def neuron(weights, x):
    return jax.numpy.maximum(x @ weights[:3], 0)[:, None] * weights[3:]


def test_a_sum_of_neurons_computes_what_the_layers_do():
    with jax.enable_x64(True):
        network = NeuronSum(LAYERS.neurons, neuron, degree=2)
        np.testing.assert_allclose(network(INPUTS), LAYERS(INPUTS), rtol=1e-12)
        coefficients = np.array([1.0, -2.0, 0.0, 0.5])
        np.testing.assert_allclose(network.weighted(coefficients)(INPUTS), LAYERS.weighted(coefficients)(INPUTS))


@pytest.mark.parametrize("network", [LAYERS, DiagonalLinear(3), LinearAttention(3, 4)])
def test_networks_take_back_their_neurons(network):
    assert isinstance(network, SumOfNeurons)
    rows = 2 * network.neurons
    np.testing.assert_array_equal(network.with_neurons(rows).neurons, rows)


@pytest.mark.parametrize("network", [LAYERS, DiagonalLinear(3).with_neurons(np.arange(6.0).reshape(3, 2))])
def test_outputs_scale_with_the_degree_and_add_up(network):
    with jax.enable_x64(True):
        whole = network(INPUTS)
        np.testing.assert_allclose(
            network.with_neurons(3 * network.neurons)(INPUTS), 3**network.degree * whole, atol=1e-12
        )
        parts = [network.weighted(one)(INPUTS) for one in np.eye(len(network.neurons))]
        np.testing.assert_allclose(sum(parts), whole, atol=1e-12)


def test_bad_neurons_are_named():
    with pytest.raises(InputError, match="degree is 0"):
        NeuronSum(np.ones((2, 4)), neuron, degree=0)
    with pytest.raises(InputError, match="neurons contains 1 value that is not finite"):
        NeuronSum([[np.nan, 1.0]], neuron, degree=2)
