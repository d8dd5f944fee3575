from __future__ import annotations

import math

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dynascope.errors import InputError
from dynascope.validation import is_traced, require_array, require_broadcast, require_covariance
from dynascope.validation.arrays import real_array

finite = st.floats(-1e30, 1e30)  # within what single precision holds
matrices = arrays.arrays(np.float64, arrays.array_shapes(min_dims=2, max_dims=2, max_side=4), elements=finite)
NOT_REAL = ["text", None, [1j], [[1.0], [1.0, 2.0]], np.array(["1"]), np.array([[3]], dtype="m8[s]"), [10**400]]


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint64, np.bool, np.float16, np.longdouble])
def test_real_arrays_become_float64(dtype):
    array = require_array("x", np.ones((2, 3), dtype), (None, 3))
    assert array.dtype == np.float64
    np.testing.assert_array_equal(array, 1.0)


@hypothesis.given(matrices)
def test_a_finite_array_of_the_shape_passes_unchanged(values):
    np.testing.assert_array_equal(require_array("x", values.tolist(), values.shape), values)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([[1.0], [1.0, 2.0]], "not an array of real numbers"),
        ([[1.0, 1j]], "not an array of real numbers"),
        (np.array([[1.0, 1j]]), "not an array of real numbers"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), "not an array of real numbers"),
        (np.array([[3]], dtype="m8[s]"), "not an array of real numbers"),
        ([["1", "2"]], "not an array of real numbers"),
        ([[b"1"]], "not an array of real numbers"),
        ([[{}]], "not an array of real numbers"),
        ([[10**400]], "not an array of real numbers"),
        ([[1.0, float("nan"), float("inf")]], "2 values that are not finite"),
        ([[None]], "1 value that is not finite"),
        ([1.0, 2.0], r"shape \(2,\): pass an array of shape \(any, any\)"),
        (3.0, r"shape \(\)"),
    ],
)
def test_what_is_not_a_finite_real_matrix_is_refused_by_name(values, problem):
    with pytest.raises(InputError, match=f"x (is|has|contains) .*{problem}") as caught:
        require_array("x", values, (None, None))
    assert caught.value.argument == "x"


def test_the_wrong_length_of_an_axis_is_refused_with_the_length_wanted():
    with pytest.raises(InputError, match=r"x has shape \(2, 2\): pass an array of shape \(any, 3\)\."):
        require_array("x", np.ones((2, 2)), (None, 3))


@hypothesis.given(arrays.arrays(np.float64, (3, 4), elements=st.floats(-1e3, 1e3)).filter(np.any))
def test_a_covariance_passes_unchanged_and_its_variances_as_a_diagonal(factor):
    moment = factor @ factor.T
    hypothesis.assume(np.abs(moment).max() > 1e-300)  # the square of a tiny number may vanish
    np.testing.assert_array_equal(require_covariance("covariance", (moment + moment.T) / 2), (moment + moment.T) / 2)
    np.testing.assert_array_equal(require_covariance("covariance", np.diag(moment)), np.diag(np.diag(moment)))


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([[1.0, 1.0], [0.0, 1.0]], "not symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], "the eigenvalue -1"),
        ([1.0, -1.0], "the eigenvalue -1"),
        ([0.0, 0.0], "is zero"),
        ([[1.0, 0.0]], "shape"),
        (3.0, "shape"),
        ([[1.0], [1.0, 2.0]], "not an array"),
        ([math.nan, 1.0], "not finite"),
    ],
)
def test_what_is_no_covariance_is_refused_by_name(values, problem):
    with pytest.raises(InputError, match=problem) as caught:
        require_covariance("covariance", values)
    assert caught.value.argument == "covariance"


def test_a_value_is_traced_inside_a_compiled_function_only():
    traced = []
    jax.jit(lambda x: traced.append(is_traced(x)) or x)(1.0)
    assert traced == [True]
    assert not is_traced(jnp.ones(2))
    assert not is_traced(np.ones(2))


@hypothesis.given(matrices)
def test_known_numbers_become_arrays_of_numpy_of_64_bits(values):
    found = real_array("x", values)
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float64  # whatever the setting of JAX is
    np.testing.assert_array_equal(found, values)


def test_jax_arrays_stay_what_they_are():
    values = jnp.ones(3)
    assert real_array("x", values) is values
    assert isinstance(real_array("x", jnp.arange(3)), jax.Array)
    assert real_array("x", jnp.arange(3)).dtype == jnp.float32


def test_lists_of_traced_numbers_become_traced_arrays():
    with jax.enable_x64(True):
        slope = jax.grad(lambda x: jnp.sum(real_array("times", [x, 2.0 * x, 1.0], dimensions=1)))(1.0)
    assert float(slope) == 3.0


@pytest.mark.parametrize("value", NOT_REAL)
def test_what_is_not_real_is_refused_by_name(value):
    with pytest.raises(InputError, match="rate is not real") as caught:
        real_array("rate", value)
    assert caught.value.argument == "rate"


@hypothesis.given(finite, finite)
def test_a_bound_is_said_when_it_is_broken(bound, value):
    if value >= bound:
        real_array("rate", value, minimum=bound)
    else:
        with pytest.raises(InputError, match=r"rate (is|contains) .* of at least") as caught:
            real_array("rate", [bound, value], minimum=bound)
        assert (caught.value.argument, caught.value.value) == ("rate", value)
    for limits in ({"above": value}, {"below": value}):
        with pytest.raises(InputError, match=next(iter(limits))):
            real_array("rate", value, **limits)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused_by_name(value):
    with pytest.raises(InputError, match="choose finite numbers") as caught:
        real_array("rate", [1.0, value])
    assert caught.value.argument == "rate"


def test_of_a_traced_array_only_the_shape_is_checked():
    with jax.enable_x64(True):
        found = jax.jit(lambda x: real_array("rate", x, above=0, dimensions=1))(jnp.array([-1.0, jnp.nan]))
        assert float(found[0]) == -1.0
        with pytest.raises(InputError, match="pass a single number"):
            jax.jit(lambda x: real_array("rate", x, dimensions=0))(jnp.ones(2))


def test_what_is_traced_in_32_bits_is_refused():
    with jax.enable_x64(False), pytest.raises(InputError, match="rate is traced by JAX in 32 bits"):
        jax.grad(lambda x: real_array("rate", x))(1.0)


@hypothesis.given(arrays.mutually_broadcastable_shapes(num_shapes=3))
def test_shapes_that_broadcast_give_their_common_shape(shapes):
    named = dict(zip(("times", "rate", "target"), shapes.input_shapes, strict=True))
    assert require_broadcast(**named) == shapes.result_shape


def test_the_first_shape_that_does_not_fit_is_named():
    with pytest.raises(InputError, match=r"rate has the leading shape \(3,\)") as caught:
        require_broadcast(times=(5,), other=(1,), rate=(3,), last=(4,))
    assert caught.value.argument == "rate"
