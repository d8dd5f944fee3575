from __future__ import annotations

import numpy as np
import pytest

from dynascope.comparison.doubts import doubts_of
from dynascope.comparison.steady_curve import steady_curve
from dynascope.record import StaircaseView, make_record

TIMES, LEVELS = np.array([100.0, 300.0]), np.array([1.0, 0.5, 0.1])


def doubts(every=1.0, *, allowed=0.12, times=TIMES, late=0.0, chosen=False, delay=0.0, begin=0.0):
    record = make_record(
        {
            "jump_time": (["jump"], times),
            "loss_before": (["jump"], LEVELS[:-1]),
            "loss_after": (["jump"], LEVELS[1:]),
        },
        {"jump": np.arange(1, len(times) + 1)},
    )
    time = np.arange(begin, 400.0, every)
    sharp = 1 / (1 + np.exp(time[:, None] - (1 + delay) * TIMES))
    return doubts_of(
        StaircaseView(record),
        steady_curve(time, LEVELS[-1] + sharp @ -np.diff(LEVELS), rest=50.0),
        allowed,
        late=late,
        chosen=chosen,
        units="steps",
    )


def test_a_curve_that_is_logged_often_raises_none():
    found = doubts()
    assert found.reasons == ["", ""]
    # A quarter of a jump passes between two points at most.
    assert 0.12 < found.allowed < 0.12 + 0.25 / 100
    np.testing.assert_allclose(found.found, TIMES, atol=0.1)


def test_points_as_rare_as_half_the_tolerance_do():
    assert [bool(each) for each in doubts(9.0).reasons] == [True, False]
    assert doubts(9.0).allowed == pytest.approx(0.12 + 9 / 300, abs=0.01)
    assert [bool(each) for each in doubts(27.0).reasons] == [True, True]


def test_what_the_user_allows_stays():
    assert doubts(9.0, chosen=True).allowed == 0.12
    assert doubts(allowed=0.5, chosen=True).reasons == ["", ""]


def test_more_than_a_third_is_not_allowed():
    assert doubts(allowed=0.33).reasons == ["", ""]
    assert doubts(allowed=0.34).reasons[0]
    # Between a third and what the curve adds to it.
    assert doubts(5.0, allowed=0.33, times=1.34 * TIMES).reasons[0]


def test_lateness_of_large_steps_is_an_excuse_for_lateness_only():
    assert doubts(delay=0.3, late=0.2).reasons[0]
    assert doubts(delay=0.4, late=0.2).reasons == ["", ""]
    assert doubts(delay=-0.2, late=0.2).reasons == ["", ""]


def test_a_jump_before_the_curve_is_not_in_it():
    assert [bool(each) for each in doubts(begin=200.0).reasons] == [True, False]


def test_jumps_with_fewer_than_three_points_between_are_not_told_apart():
    assert doubts(80.0, allowed=1.0, chosen=True).reasons[1]
    assert doubts(60.0, allowed=1.0, chosen=True).reasons[1] == ""
