from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.validation import require_increasing, require_whole_numbers
from dynascope.validation.known import require_bounds


def test_numbers_within_bounds_pass():
    require_bounds("noise", np.array([[0.0, 1.0]]), minimum=0, below=1.5)
    require_bounds("noise", np.array(1e-300), above=0)
    require_bounds("noise", np.zeros(0), above=0)


@pytest.mark.parametrize(
    ("value", "bounds"),
    [
        (-1e-300, {"minimum": 0}),
        (0.0, {"above": 0}),
        (2.0, {"minimum": 0, "below": 2}),
        (math.nan, {}),
        (math.inf, {"above": 0}),
    ],
)
def test_numbers_outside_of_bounds_are_refused_by_name(value, bounds):
    with pytest.raises(InputError, match=f"noise .*{value:g}") as caught:
        require_bounds("noise", np.array([1.0, value]), **bounds)
    assert caught.value.argument == "noise"
    assert re.findall(r"\d", str(caught.value.remedy)) == [str(bound) for bound in bounds.values()]
    np.testing.assert_equal(caught.value.value, value)


def test_whole_numbers_pass():
    require_whole_numbers("steps", np.array([[0.0, 2.0**60]]))
    require_whole_numbers("steps", np.array([1, 7]), least=1, most=7)
    require_whole_numbers("steps", np.array(0.0))


@pytest.mark.parametrize(
    ("value", "bounds", "told"),
    [(0.5, {}, ["0"]), (-1.0, {}, ["0"]), (0.0, {"least": 1}, ["1"]), (8.0, {"most": 7}, ["0", "7"])],
)
def test_broken_numbers_and_those_outside_of_bounds_are_refused_by_name(value, bounds, told):
    with pytest.raises(InputError, match=f"steps .*{value:g}") as caught:
        require_whole_numbers("steps", np.array([1.0, value]), **bounds)
    assert (caught.value.argument, caught.value.value) == ("steps", value)
    assert re.findall(r"\d", str(caught.value.remedy)) == told


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, unique=True))
def test_what_is_sorted_passes_and_in_any_other_order_is_refused(values):
    require_increasing("levels", np.sort(values))
    with pytest.raises(InputError, match="levels is not increasing"):
        require_increasing("levels", np.array([*sorted(values), math.nan]))
    if values != sorted(values):
        with pytest.raises(InputError, match="levels is not increasing, since"):
            require_increasing("levels", np.array(values))


def test_an_error_names_the_first_number_that_is_not_larger():
    with pytest.raises(InputError, match="levels is not increasing, since 3 follows 3: sort them") as caught:
        require_increasing("levels", np.array([1.0, 3.0, 3.0, 2.0]), remedy="sort them")
    assert (caught.value.argument, caught.value.value) == ("levels", 3.0)


def test_too_few_numbers_are_refused():
    require_increasing("levels", np.zeros(0), fewest=0)
    with pytest.raises(InputError, match="levels has 1 number: give at least 2 increasing numbers"):
        require_increasing("levels", np.ones(1), fewest=2)
