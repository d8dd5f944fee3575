"""Arguments of other classes than NumPy's and Python's own numbers."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from dynascope.arguments import checked
from dynascope.arguments.plain import plain
from dynascope.errors import InputError

HIDDEN = np.ma.masked_array([1.0, -999.0], [False, True])


class Layers(NamedTuple):
    first: np.ndarray
    second: np.ndarray


@checked
def square(values: np.ndarray, *more: np.ndarray, times: int = 1, **options: object) -> list:
    return [values * values, *more, list(range(times)), options]


@pytest.mark.parametrize("value", [HIDDEN, np.ma.masked, [HIDDEN], (1, HIDDEN), {"x": HIDDEN}, Layers(HIDDEN, HIDDEN)])
def test_what_hides_values_is_refused_wherever_it_is_given(value):
    for call in (lambda: square(value), lambda: square(1.0, value), lambda: square(1.0, more=value)):
        with pytest.raises(InputError, match=r"1 values? (is|are) masked: drop .* or fill") as caught:
            call()
        assert caught.value.argument in ("values", "more")


def test_arrays_of_other_classes_are_plain_ones_without_a_copy():
    data = np.arange(4.0).reshape(2, 2)
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix(data)
    assert np.array_equal(square(matrix)[0], data * data)
    for other in (np.ma.masked_array(data), data.view(np.recarray)):
        found = plain("x", other)
        assert type(found) is np.ndarray
        assert np.shares_memory(found, data)
    assert plain("x", data) is data


def test_fractions_and_decimals_are_floats_and_whole_floats_are_counts():
    assert square(Fraction(1, 2))[0] == square(Decimal("0.5"))[0] == 0.25
    assert plain("x", [Fraction(1, 4), 2]) == [0.25, 2]
    assert type(square(1.0, times=1e1)[1][-1]) is int
    assert square(1.0, times=np.array(2))[1] == [0, 1]
    assert plain("x", Fraction(10**400)) == 10**400
    with pytest.raises(InputError, match=r"times is 1.5: give a whole number"):
        square(1.0, times=1.5)


@pytest.mark.parametrize("value", [[1, 2.0], {"x": [1]}, Layers(np.ones(1), np.ones(1)), "text", None, (), [[1], [2]]])
def test_what_is_plain_stays_what_it_is(value):
    assert plain("x", value) is value
