import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.flows import GradientFlow, gradient_flow
from dynascope.networks import DeepLinear, NeuronSum
from dynascope.tasks import Task

ONE = Task([[1.0], [-1.0]], [[1.0], [1.0]])


def square(weights, x):
    return weights[0] * (x * weights[1]) ** 2


def sizes(network):
    return (network.neurons**2).sum(axis=1) ** 0.5


RECORDED = {"save": 4, "normalised": True, "statistics": {"size": (sizes, ("neuron",))}}


@pytest.mark.slow
def test_a_neuron_of_degree_three_grows_exponentially():
    # f = θ₀ θ₁² and U = θ₀ θ₁², largest at θ₁ = √2 θ₀, where κ Û = 3·2/3^(3/2).
    start = np.array([[1.0, 2**0.5]] * 3) / 3**0.5
    run = gradient_flow(ONE, NeuronSum(start, square, degree=3), GradientFlow(duration=5.0, **RECORDED), scale=1e-6)
    growth = np.log(run["size"].to_numpy() / 1e-6)
    # The residual is frozen up to the loss that is explained, of order 1e-15.
    expected = np.multiply.outer(run["time"].to_numpy() * 2 / 3**0.5, np.ones(3))
    np.testing.assert_allclose(growth, expected, rtol=1e-6, atol=1e-12)


@pytest.mark.slow
def test_members_of_an_ensemble_have_their_own_rates():
    starts = np.random.default_rng(0).normal(size=(2, 3, 2))
    networks = [NeuronSum(start, square, degree=3) for start in starts]
    together = gradient_flow(ONE, networks, GradientFlow(duration=9.0, **RECORDED), scale=[1e-2, 1e-3])
    alone = gradient_flow(ONE, networks[1], GradientFlow(duration=9.0, **RECORDED), scale=1e-3)
    np.testing.assert_allclose(together["loss"][1, 1], alone["loss"], rtol=1e-6)
    np.testing.assert_allclose(together["size"][1, 1], alone["size"], rtol=1e-6)


def test_networks_without_neurons_are_refused():
    with pytest.raises(InputError, match="the network, of type DeepLinear, does not define its neurons"):
        gradient_flow(ONE, DeepLinear((1, 2, 2, 1)), GradientFlow(duration=1.0, normalised=True))
    with pytest.raises(InputError, match="all weights of a neuron are zero"):
        gradient_flow(ONE, NeuronSum(np.zeros((1, 2)), square, degree=3), GradientFlow(duration=1.0, normalised=True))
