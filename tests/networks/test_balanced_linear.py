from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.networks.balanced_linear import balanced_linear, balanced_networks, isotropic_linear


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5), st.floats(-3, 3), st.integers(0, 1000))
def test_layers_are_balanced_or_refused(inputs, width, outputs, balance, seed):
    if balance != 0 and width > (outputs if balance > 0 else inputs):
        with pytest.raises(InputError, match="balance"):
            balanced_linear(inputs, width, outputs, balance=balance, seed=seed)
        return
    network = balanced_linear(inputs, width, outputs, balance=balance, scale=0.7, seed=seed)
    difference = network.second @ network.second.T - network.first.T @ network.first
    np.testing.assert_allclose(difference, balance * np.eye(width), atol=1e-12)


def test_the_smaller_layer_has_the_scale():
    network = balanced_linear(200, 50, 100, balance=4.0, scale=0.3, seed=1)
    # The standard deviation of 10 000 entries is known to one percent.
    assert np.std(network.first) == pytest.approx(0.3 / 50**0.5, rel=0.03)


def test_the_same_seed_draws_the_same_network():
    one, other = (balanced_linear(3, 2, 3, balance=1.0, seed=4) for _ in range(2))
    np.testing.assert_array_equal(one.second, other.second)


@pytest.mark.parametrize("change", [{"width": 0}, {"scale": -1.0}, {"seed": -1}, {"balance": np.nan}])
def test_bad_input_is_named(change):
    with pytest.raises(InputError) as caught:
        balanced_linear(**{"inputs": 3, "width": 2, "outputs": 3, **change})
    assert caught.value.argument == next(iter(change))


def test_networks_of_several_balances_conserve_them_in_the_units_of_their_rates():
    balances, (first_rate, second_rate) = [-1.0, 0.5], (2.0, 0.5)
    for balance, network in zip(
        balances, balanced_networks((3, 2, 3), balances, rate_ratio=first_rate / second_rate), strict=True
    ):
        difference = first_rate * network.second @ network.second.T - second_rate * network.first.T @ network.first
        np.testing.assert_allclose(difference, balance * (first_rate * second_rate) ** 0.5 * np.eye(2), atol=1e-12)


def test_square_maps_of_one_sign_have_positive_determinants():
    networks = [each for seed in range(6) for each in balanced_networks((2, 2, 2), [0.7], one_sign=True, seed=seed)]
    assert all(np.linalg.det(network.first @ network.second) > 0 for network in networks)


@pytest.mark.parametrize("imbalance", [0.8, -0.8])
def test_isotropic_networks_have_the_map_and_the_imbalance_that_are_asked_for(imbalance):
    start = np.random.default_rng(3).normal(size=(3, 2))
    network = isotropic_linear(start, imbalance, first_rate=2.0, second_rate=0.3)
    np.testing.assert_allclose(network.first @ network.second, start, atol=1e-12)
    difference = 2.0 * network.second @ network.second.T - 0.3 * network.first.T @ network.first
    np.testing.assert_allclose(difference, imbalance * np.eye(2 if imbalance > 0 else 3), atol=1e-12)
