from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import float64_jit
from dynascope.errors import InputError
from dynascope.theory.kernels import all_finite, broadcast_known, nan_outside
from dynascope.validation import require_known, require_shape


@pytest.mark.parametrize(
    ("shape", "last"), [((), (None,)), ((2, 3), (2,)), ((2, 3), (None, 2)), ((3,), (None, 3)), ((2, 0), (None,))]
)
def test_other_last_axes_are_refused_by_name(shape, last):
    with pytest.raises(InputError) as refusal:
        require_shape("weights", np.ones(shape), (..., *last))
    assert refusal.value.argument == "weights"
    assert refusal.value.value == shape


def test_python_floats_numbers_of_numpy_and_arrays_are_brought_to_one_shape():
    @float64_jit
    def product(one, other):
        assert one.shape == other.shape
        return one * other

    for pair in ((2.0, 3.0), (np.float64(2.0), 3.0), (2.0, np.float32(3.0))):
        assert product(*broadcast_known(*pair)) == 6
    for pair in (([2.0, 4.0], 3.0), (2.0, [3.0, 6.0])):
        np.testing.assert_array_equal(product(*broadcast_known(*pair)), [6, 12])


def test_arrays_of_jax_are_not_spread():
    one, other = broadcast_known(jnp.ones(2), 3.0)
    assert one.shape == (2,)
    assert other == 3.0


def test_truth_values_stay_where_numbers_become_nan():
    numbers, truths = nan_outside(jnp.array([True, False]), (jnp.ones((2, 3)), jnp.array([True, True])), leading=True)
    assert np.isnan(numbers).all(axis=1).tolist() == [False, True]
    assert truths.tolist() == [True, True]


def test_derivatives_are_those_of_the_result_where_it_is_valid():
    slope = jax.grad(lambda x: nan_outside(x > 0, jnp.sqrt(x)))
    assert slope(4.0) == 0.25


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


@pytest.mark.slow
def test_outside_the_domain_the_value_and_its_derivative_are_nan_and_inside_they_are_not_touched():
    def root(x):
        return nan_outside(all_finite(x) & (x > 0), jnp.sqrt(jnp.abs(x) + 1))

    values, slopes = jax.vmap(jax.value_and_grad(root))(jnp.array([3.0, -3.0, jnp.inf]))
    np.testing.assert_array_equal(values, [2.0, np.nan, np.nan])
    np.testing.assert_array_equal(slopes, [0.25, np.nan, np.nan])


def test_values_that_jax_traces_are_refused_where_they_must_be_known():
    with pytest.raises(InputError, match="second is traced by JAX"):
        jax.jit(lambda x: require_known(first=1.0, second=x))(1.0)
