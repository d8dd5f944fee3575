from __future__ import annotations

import numpy as np
import pytest

from dynascope.plot.axes import axis_label, is_logarithmic, is_power_law, literal
from dynascope.plot.traces import OBSERVED, Trace


def line(x, y, axis="time"):
    return Trace("observed", "", OBSERVED, True, axis, np.asarray(x, float), np.asarray(y, float))


@pytest.mark.parametrize(("axis", "expected"), [("samples", True), ("scale", True), ("step", False)])
def test_some_axes_are_logarithmic_by_their_kind(axis, expected):
    assert is_logarithmic([line([1, 2, 3, 4], [1, 1, 1, 1], axis)]) == expected


def test_an_axis_whose_points_keep_a_ratio_is_logarithmic_even_after_a_zero():
    ratios = np.append(0.0, np.geomspace(1e-3, 1e3, 7))
    assert is_logarithmic([line(ratios, ratios)])
    # Less than two decades need no logarithm.
    assert not is_logarithmic([line(np.geomspace(1, 99, 7), np.ones(7))])


def test_values_that_vanish_are_no_power_law():
    x = np.geomspace(1, 1e6, 9)
    assert is_power_law([line(x, 1 / x)])
    assert not is_power_law([line(x, np.append(1 / x[:-1], 0.0))])


def test_an_axis_is_called_by_the_words_of_records_or_by_its_own():
    assert axis_label("time") == "gradient-flow time"
    assert axis_label("mode_strength") == "strength of the mode"


def test_a_dollar_sign_starts_no_formula():
    assert literal("costs $5") == r"costs \$5"
