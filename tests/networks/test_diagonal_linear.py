from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dynascope.errors import InputError
from dynascope.networks import DiagonalLinear

numbers = st.floats(-10, 10, allow_subnormal=False)


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def with_weights(u, v):
    treedef = jax.tree.structure(DiagonalLinear(len(u)))
    return jax.tree.unflatten(treedef, [u, v])


def test_the_start_is_the_zero_function_with_every_u_at_the_scale():
    network = DiagonalLinear(4, scale=1e-3)
    np.testing.assert_array_equal(network.u, 1e-3)
    np.testing.assert_array_equal(network.v, 0.0)
    np.testing.assert_array_equal(network(np.ones((5, 4))), np.zeros((5, 1)))
    assert network.u.dtype == network.v.dtype == np.float64


@given(arrays(np.float64, (2, 3), elements=numbers), arrays(np.float64, (4, 3), elements=numbers))
def test_the_network_is_the_linear_map_of_its_coefficients(weights, x):
    network = with_weights(*weights)
    np.testing.assert_array_equal(network.coefficients, weights[0] * weights[1])
    expected = [[sum(weights[0, i] * weights[1, i] * row[i] for i in range(3))] for row in x]
    # Terms of size up to 10³ may cancel.
    np.testing.assert_allclose(network(x), expected, atol=1e-12)
    np.testing.assert_allclose(network(x[0]), network(x)[0], atol=1e-12)


@given(arrays(np.float64, (2, 3), elements=numbers), arrays(np.float64, (4, 3), elements=numbers), st.floats(0.1, 10.0))
def test_the_network_is_homogeneous_of_degree_two(weights, x, factor):
    network = with_weights(*weights)
    scaled = with_weights(*(factor * weights))
    assert network.degree == 2
    np.testing.assert_allclose(scaled(x), factor**network.degree * network(x), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("arguments", [{"input_dimension": 0}, {"scale": 0.0}, {"scale": float("inf")}])
def test_bad_arguments_are_refused_by_name(arguments):
    with pytest.raises(InputError) as caught:
        DiagonalLinear(**{"input_dimension": 3, **arguments})
    assert caught.value.argument in arguments
