from __future__ import annotations

import numpy as np
import pytest

from dynascope.arguments import require, require_array, require_positive, require_seed
from dynascope.errors import DivergenceError, InputError


def test_an_input_error_is_one_sentence_and_carries_what_a_machine_needs():
    error = InputError("scale is -1.0", argument="scale", value=-1.0, remedy="choose a positive number")
    assert str(error) == "scale is -1.0: choose a positive number."
    assert (error.argument, error.value, error.remedy) == ("scale", -1.0, "choose a positive number")
    assert isinstance(error, ValueError)


def test_a_divergence_error_carries_the_time():
    error = DivergenceError("the loss is infinite", time=3.5, remedy="halve the learning rate")
    assert str(error) == "the loss is infinite: halve the learning rate."
    assert (error.time, error.remedy) == (3.5, "halve the learning rate")
    assert not isinstance(error, InputError)


def test_require_raises_only_when_the_condition_fails():
    require(True, "a", argument="a", remedy="b")
    require(np.bool(True), "a", argument="a", remedy="b")
    with pytest.raises(InputError, match=r"^a is 3: choose 4\.$"):
        require(False, "a is 3", argument="a", value=3, remedy="choose 4")


@pytest.mark.parametrize("value", [1, 1e-300, np.float32(2.0), np.int64(3), np.array(4.0)])
def test_positive_numbers_of_any_type_pass(value):
    require_positive(width=value)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "3", None, 1j, np.array([1.0, 2.0]), [1.0]])
def test_what_is_not_a_finite_positive_number_is_refused_by_name(value):
    with pytest.raises(InputError, match="width is") as caught:
        require_positive(scale=1.0, width=value)
    assert caught.value.argument == "width"


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint64, np.bool, np.float16, np.longdouble])
def test_real_arrays_become_float64(dtype):
    array = require_array("x", np.ones((2, 3), dtype), (None, 3))
    assert array.dtype == np.float64
    np.testing.assert_array_equal(array, 1.0)


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
        ([[None]], "1 values that are not finite"),
        ([1.0, 2.0], r"shape \(2,\): pass an array of shape \(any, any\)"),
        (3.0, r"shape \(\)"),
    ],
)
def test_what_is_not_a_finite_real_matrix_is_refused_by_name(values, problem):
    with pytest.raises(InputError, match=f"x (is|has) .*{problem}") as caught:
        require_array("x", values, (None, None))
    assert caught.value.argument == "x"


def test_the_wrong_length_of_an_axis_is_refused_with_the_length_wanted():
    with pytest.raises(InputError, match=r"x has shape \(2, 2\): pass an array of shape \(any, 3\)\."):
        require_array("x", np.ones((2, 2)), (None, 3))


@pytest.mark.parametrize("seed", [-1, 1.5, "one"])
def test_a_seed_that_is_no_whole_number_from_zero_is_named(seed):
    with pytest.raises(InputError, match=f"seed is {seed}") as caught:
        require_seed(seed)
    assert caught.value.argument == "seed"
