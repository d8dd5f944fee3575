from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.networks import TwoLayer
from dynascope.studies.regimes.width_phases.networks import WideNetworks, padded, stratified


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_the_kernel_is_that_of_the_derivatives_by_all_weights(activation):
    network = TwoLayer(3, 7, 2, activation=activation, seed=4)
    inputs = np.random.default_rng(1).normal(size=(5, 3))
    rates = {"first": 0.3, "second": 2.0}
    with jax.enable_x64(True):
        by_weights = jit(jax.jacobian(lambda weights: network.with_neurons(weights)(inputs)))(network.neurons)
    by_first, by_second = np.split(np.asarray(by_weights), [3], axis=-1)
    wanted = sum(
        rate * np.einsum("acij,bcij->ab", each, each)
        for rate, each in ((rates["first"], by_first), (rates["second"], by_second))
    )
    ensemble = WideNetworks([network], rates)
    found = ensemble.kernels(*ensemble.layers(), inputs)
    # Both are sums of a few products in double precision.
    np.testing.assert_allclose(found[0], wanted, rtol=1e-12, atol=1e-12)


def test_silent_neurons_change_neither_the_function_nor_its_gradient():
    network = TwoLayer(3, 7, 2, activation="relu", seed=4)
    inputs = np.random.default_rng(1).normal(size=(5, 3))
    with jax.enable_x64(True):
        larger = padded(network, 10)
        np.testing.assert_allclose(larger(inputs), network(inputs), rtol=1e-12)
        loss = jit(jax.grad(lambda weights: (network.with_neurons(weights)(inputs) ** 2).sum()))
        np.testing.assert_allclose(loss(larger.neurons)[:7], loss(network.neurons), rtol=1e-12)
        assert not np.any(loss(larger.neurons)[7:])


def test_a_stratified_start_has_the_norms_and_the_overlap_asked_for():
    direction = np.array([0.6, 0.8])
    network = stratified(TwoLayer(2, 25, 1, seed=3), direction, 2.0, 0.5, -1.5)
    u, v = network.second[:, 0], direction @ network.first
    across = np.array([-0.8, 0.6])
    assert u @ u == pytest.approx(25 * 0.5**2)
    assert v @ v == pytest.approx(25 * 2.0**2)
    assert u @ v == pytest.approx(-1.5 * np.sqrt(25) * 0.5 * 2.0)
    np.testing.assert_allclose(across @ network.first, across @ TwoLayer(2, 25, 1, seed=3).first)


def test_the_change_of_a_kernel_is_relative_to_its_size():
    ensemble = WideNetworks([TwoLayer(3, 7, 2, seed=seed) for seed in (0, 1)], {"first": 1.0, "second": 1.0})
    first, second = ensemble.layers()
    inputs = np.eye(3)
    # The kernel is of degree two in the weights.
    np.testing.assert_allclose(ensemble.kernel_change(1.1 * first, 1.1 * second, inputs), 0.21, rtol=1e-10)
    np.testing.assert_allclose(ensemble.kernel_change(first, second, inputs), 0.0)
