from __future__ import annotations

import equinox as eqx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dynascope.errors import InputError
from dynascope.networks.deep_diagonal import DeepDiagonal

numbers = st.floats(-2.0, 2.0)
depths = st.integers(2, 5)


def with_weights(u, v, depth):
    return eqx.tree_at(lambda network: (network.u, network.v), DeepDiagonal(len(u), depth), (u, v))


def test_starts_at_the_zero_function_with_every_weight_at_the_scale():
    network = DeepDiagonal(3, 4, scale=0.5)
    np.testing.assert_array_equal(network.u, [0.5, 0.5, 0.5])
    np.testing.assert_array_equal(network.v, [0.5, 0.5, 0.5])
    np.testing.assert_array_equal(network(np.ones((2, 3))), np.zeros((2, 1)))


def test_output_is_computed_by_hand():
    network = with_weights(np.array([1.0, 2.0]), np.array([2.0, 0.5]), 3)
    # β = (1 − 8, 8 − 1/8).
    np.testing.assert_allclose(network.coefficients, [-7.0, 7.875])
    np.testing.assert_allclose(network(np.array([[1.0, 2.0], [1.0, 0.0]])), [[8.75], [-7.0]])
    np.testing.assert_allclose(network(np.array([1.0, 2.0])), [8.75])


@given(arrays(np.float64, (2, 3), elements=numbers), arrays(np.float64, (4, 3), elements=numbers), depths)
def test_the_network_is_homogeneous_of_its_depth(weights, x, depth):
    network, scaled = with_weights(*weights, depth), with_weights(*(1.7 * weights), depth)
    assert network.degree == depth
    # Terms of size up to 2·(3.4)⁵ may cancel.
    np.testing.assert_allclose(scaled(x), 1.7**depth * network(x), rtol=1e-9, atol=1e-11)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    "arguments",
    [{"input_dimension": 0}, {"scale": 0.0}, {"scale": float("nan")}, {"depth": 1}, {"depth": 0}, {"depth": 2.5}],
)
def test_bad_arguments_are_refused_by_name(arguments):
    with pytest.raises(InputError) as caught:
        DeepDiagonal(**{"input_dimension": 3, "depth": 3, **arguments})
    assert caught.value.argument in arguments
