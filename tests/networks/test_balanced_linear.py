from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.networks.balanced_linear import balanced_linear


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
