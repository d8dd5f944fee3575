"""Arguments of other classes than NumPy's and Python's own numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from dynascope.arguments import checked
from dynascope.arguments.plain import plain
from dynascope.errors import InputError


class Layers(NamedTuple):
    first: np.ndarray
    second: np.ndarray


@checked
def square(values: np.ndarray, *more: np.ndarray, times: int = 1, **options: object) -> list:
    return [values * values, *more, list(range(times)), options]


def test_views_of_other_classes_become_arrays_without_a_copy():
    data = np.arange(4.0)
    found = plain("x", data.view(np.recarray))
    assert type(found) is np.ndarray
    assert np.shares_memory(found, data)
    assert plain("x", data) is data


def test_whole_floats_are_counts():
    assert type(square(1.0, times=1e1)[1][-1]) is int
    assert square(1.0, times=np.array(2))[1] == [0, 1]
    with pytest.raises(InputError, match=r"times is 1.5: give a whole number"):
        square(1.0, times=1.5)


@pytest.mark.parametrize("value", [[1, 2.0], {"x": [1]}, Layers(np.ones(1), np.ones(1)), "text", None, (), [[1], [2]]])
def test_what_is_plain_stays_what_it_is(value):
    assert plain("x", value) is value
