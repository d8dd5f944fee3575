from __future__ import annotations

import numpy as np
import pytest

from dynascope.plot.axes import count_ticks, is_crowded, is_logarithmic, is_power_law, literal
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


def test_a_dollar_sign_starts_no_formula():
    assert literal("costs $5") == r"costs \$5"


def steps(times: list[float], end: float) -> Trace:
    """A predicted staircase as `traces.staircase` draws it."""
    x = np.concatenate([[0.0, times[0] / 10], np.repeat(times, 2), [end]])
    return Trace("predicted", "", "#D55E00", True, "time", x, np.linspace(1, 0, len(x)))


@pytest.mark.parametrize(
    ("times", "crowded"),
    [([30.0, 400.0, 600.0, 5e4], True), ([3.0, 100.0], True), ([30.0, 40.0, 50.0], False), ([1.0], False)],
)
def test_a_late_jump_asks_for_a_logarithmic_axis_where_it_crowds_the_others(times, crowded):
    assert is_crowded([steps(times, 1.15 * times[-1])]) == crowded


def test_ticks_count_layers_and_modes_and_no_times():
    def ticks(axis, x):
        return list(count_ticks([Trace("observed", "", "#0072B2", True, axis, np.array(x), np.ones(len(x)))]).values())

    assert ticks("layer", [1.0, 2.0, 3.0]) == ["1", "2", "3"]
    assert ticks("time", [1.0, 2.0, 3.0]) == []
    assert ticks("layer", [1.0, 2.5]) == []
    assert ticks("mode", list(np.arange(40.0))) == []
