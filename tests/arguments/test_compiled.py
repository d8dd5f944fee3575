from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.arguments import nan_outside, real_times, real_value
from dynascope.errors import InputError


@pytest.mark.parametrize(
    ("shape", "last"), [((), (None,)), ((2, 3), (2,)), ((2, 3), (None, 2)), ((3,), (None, 3)), ((2, 0), (None,))]
)
def test_other_last_axes_are_refused_by_name(shape, last):
    with pytest.raises(InputError) as refusal:
        real_value("weights", np.ones(shape), last=last)
    assert refusal.value.argument == "weights"
    assert refusal.value.value == shape


def test_a_python_float_takes_the_precision_of_what_it_meets():
    with jax.enable_x64(True):
        product = jax.jit(jnp.multiply)
        assert product(np.float32(2.0), real_value("rate", 0.5)).dtype == np.float32
        assert product(np.float32(2.0), real_times(0.5)).dtype == np.float32
        assert product(np.float32(2.0), real_value("rate", np.float64(0.5))).dtype == np.float64


def test_python_floats_are_checked_all_the_same():
    with pytest.raises(InputError, match="rate"):
        real_value("rate", -1.0, above=0)
    with pytest.raises(InputError, match="times"):
        real_times(-1.0)


def test_truth_values_stay_where_numbers_become_nan():
    numbers, truths = nan_outside(jnp.array([True, False]), (jnp.ones((2, 3)), jnp.array([True, True])), leading=True)
    assert np.isnan(numbers).all(axis=1).tolist() == [False, True]
    assert truths.tolist() == [True, True]


def test_derivatives_are_those_of_the_result_where_it_is_valid():
    slope = jax.grad(lambda x: nan_outside(x > 0, jnp.sqrt(x)))
    assert slope(4.0) == 0.25
