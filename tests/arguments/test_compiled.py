from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.arguments import (
    all_finite,
    in_one_shape,
    nan_outside,
    real_arrays,
    real_times,
    real_value,
    require_known,
    require_numbers,
)
from dynascope.compilation import float64_jit
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


def test_python_floats_numbers_of_numpy_and_arrays_are_brought_to_one_shape():
    @float64_jit
    def product(one, other):
        assert one.shape == other.shape
        return one * other

    for pair in ((2.0, 3.0), (np.float64(2.0), 3.0), (2.0, np.float32(3.0))):
        assert product(*in_one_shape(*pair)) == 6
    for pair in (([2.0, 4.0], 3.0), (2.0, [3.0, 6.0])):
        np.testing.assert_array_equal(product(*in_one_shape(*pair)), [6, 12])


def test_arrays_of_jax_are_not_spread():
    one, other = in_one_shape(jnp.ones(2), 3.0)
    assert one.shape == (2,)
    assert other == 3.0


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


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("number", [2, 2.0])
def test_python_numbers_have_64_bits_and_beside_arrays_of_jax_their_precision(number):
    single = np.ones(3, np.float32)
    assert real_arrays(times=single, rate=number)[1].dtype == np.float64
    assert real_arrays(times=single, rate=np.float64(2))[1].dtype == np.float64
    held = jnp.asarray(single)
    assert real_arrays(times=held, rate=number)[1].dtype == np.float32
    assert real_arrays(times=held, rate=np.float64(2))[0] is held
    assert [each.dtype for each in real_arrays(times=3, rate=number)] == [np.float64] * 2


@pytest.mark.parametrize("beside", [np.ones(3, np.float32), jnp.ones(3, np.float32)])
@pytest.mark.parametrize("number", [1e-50, -1e300])
def test_a_python_number_that_32_bits_cannot_hold_stays_what_it_is(beside, number):
    assert np.all(real_arrays(times=beside, start=number)[1] == number)


def test_what_is_known_stays_in_numpy_and_what_jax_holds_stays_there():
    times, rate, scale = real_arrays(times=[0, 1], rate=2.0, scale=jnp.ones(2))
    assert isinstance(times, np.ndarray)
    assert isinstance(rate, np.ndarray)
    assert isinstance(scale, jax.Array)


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"times": [0.0, -1.0], "rate": 1.0}, "times"),
        ({"times": 1.0, "rate": 0.0}, "rate"),
        ({"times": 1.0, "rate": 1.0, "fraction": 1.0}, "fraction"),
        ({"times": np.ones(2), "rate": np.ones(3)}, "rate"),
    ],
)
def test_bounds_and_shapes_are_those_of_the_argument_that_is_named(arguments, argument):
    with pytest.raises(InputError) as refusal:
        real_arrays(**arguments, minimum={"times": 0}, above={"rate": 0}, below={"fraction": 1})
    assert refusal.value.argument == argument


def test_shapes_need_not_fit_where_that_is_said():
    shapes = [each.shape for each in real_arrays(times=np.ones(2), rate=np.ones(3), broadcast=False)]
    assert shapes == [(2,), (3,)]


@pytest.mark.slow
def test_outside_the_domain_the_value_and_its_derivative_are_nan_and_inside_they_are_not_touched():
    def root(x):
        return nan_outside(all_finite(x) & (x > 0), jnp.sqrt(jnp.abs(x) + 1))

    values, slopes = jax.vmap(jax.value_and_grad(root))(jnp.array([3.0, -3.0, jnp.inf]))
    np.testing.assert_array_equal(values, [2.0, np.nan, np.nan])
    np.testing.assert_array_equal(slopes, [0.25, np.nan, np.nan])


def test_values_that_jax_traces_are_refused_where_they_must_be_known():
    for check in (lambda x: require_known(first=1.0, second=x), lambda x: require_numbers("second", x)):
        with pytest.raises(InputError, match="second is traced by JAX"):
            jax.jit(check)(1.0)


def test_numbers_are_double_precision_whatever_the_precision_of_jax():
    with jax.enable_x64(False):
        assert require_numbers("compute", 1 + 1e-12, above=1) == 1 + 1e-12
