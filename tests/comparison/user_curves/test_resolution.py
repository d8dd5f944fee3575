from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.comparison.user_curves.resolution import monotone_fit, resolve_jumps
from dynascope.results import StaircaseView, make_record
from dynascope.results.steps_seen import crossing_times

TIMES, LEVELS = np.array([100.0, 300.0]), np.array([1.0, 0.5, 0.1])


def resolved(every=1.0, *, allowed=0.12, times=TIMES, late=0.0, chosen=False, delay=0.0, begin=0.0):
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
    return resolve_jumps(
        StaircaseView(record),
        monotone_fit(time, LEVELS[-1] + sharp @ -np.diff(LEVELS), rest=50.0),
        allowed,
        late=late,
        chosen=chosen,
        units="steps",
    )


def test_a_curve_that_is_logged_often_raises_none():
    found = resolved()
    assert found.reasons == ["", ""]
    # A quarter of a jump passes between two points at most.
    assert 0.12 < found.allowed < 0.12 + 0.25 / 100
    np.testing.assert_allclose(found.found, TIMES, atol=0.1)


def test_points_as_rare_as_half_the_tolerance_do():
    assert [bool(each) for each in resolved(9.0).reasons] == [True, False]
    assert resolved(9.0).allowed == pytest.approx(0.12 + 9 / 300, abs=0.01)
    assert [bool(each) for each in resolved(27.0).reasons] == [True, True]


def test_what_the_user_allows_stays():
    assert resolved(9.0, chosen=True).allowed == 0.12
    assert resolved(allowed=0.5, chosen=True).reasons == ["", ""]


def test_more_than_a_third_is_not_allowed():
    assert resolved(allowed=0.33).reasons == ["", ""]
    assert resolved(allowed=0.34).reasons[0]
    # Between a third and what the curve adds to it.
    assert resolved(5.0, allowed=0.33, times=1.34 * TIMES).reasons[0]


def test_lateness_of_large_steps_is_an_excuse_for_lateness_only():
    assert resolved(delay=0.3, late=0.2).reasons[0]
    assert resolved(delay=0.4, late=0.2).reasons == ["", ""]
    assert resolved(delay=-0.2, late=0.2).reasons == ["", ""]


def test_a_jump_before_the_curve_is_not_in_it():
    assert [bool(each) for each in resolved(begin=200.0).reasons] == [True, False]


def test_jumps_with_fewer_than_three_points_between_are_not_told_apart():
    assert resolved(80.0, allowed=1.0, chosen=True).reasons[1]
    assert resolved(60.0, allowed=1.0, chosen=True).reasons[1] == ""


TIME = np.arange(4000.0)
FALL = 0.1 + 0.9 / (1 + np.exp((TIME - 1500) / 20))


def noisy(spread, seed=0):
    return FALL * np.exp(spread * np.random.default_rng(seed).normal(size=len(TIME)))


def test_a_curve_that_falls_stays_as_it_is():
    rounded = FALL.astype(np.float32).astype(float) * (1 + 1e-7 * np.random.default_rng(0).normal(size=len(TIME)))
    for curve in (FALL, rounded):
        fit = monotone_fit(TIME, curve, rest=700.0)
        assert not fit.noisy
        np.testing.assert_array_equal(fit.loss, curve)


@given(st.floats(0.01, 0.1), st.integers(0, 50))
def test_the_fit_of_a_noisy_curve_only_falls_and_keeps_its_levels_and_times(spread, seed):
    fit = monotone_fit(TIME, noisy(spread, seed), rest=700.0)
    assert fit.noisy
    assert np.all(np.diff(fit.loss) <= 0)
    # Hundreds of points are averaged: of a spread of a tenth, half a percent is left.
    np.testing.assert_allclose(fit.loss[[0, 1000, -1]], FALL[[0, 1000, -1]], rtol=0.03)
    # The fall lasts a hundred steps, and three percent of the time around them are averaged.
    np.testing.assert_allclose(crossing_times(TIME, fit.loss, np.array([0.55])), 1500, rtol=0.02)


def test_the_spread_is_that_of_the_noise():
    fit = monotone_fit(TIME, noisy(0.05), rest=700.0)
    # A fifth of the spread is what seven hundred points leave open, many times over.
    assert fit.error(0.0) * 701**0.5 == pytest.approx(0.05, rel=0.2)
    # The loss is a tenth at the end, and so is its noise; six percent of the time are averaged, or half of that.
    assert 0.005 / 240**0.5 / 1.5 < fit.error(3999.0) < 0.005 / 120**0.5 * 1.5


@pytest.mark.parametrize("decimals", [1, 3, 5])
def test_what_was_printed_with_a_few_decimals_is_known_to_half_of_the_last(decimals):
    fit = monotone_fit(TIME, np.round(FALL, decimals), rest=700.0)
    assert fit.unit == pytest.approx(10.0**-decimals)
    assert fit.error(0.0) == pytest.approx(10.0**-decimals / 4)
    assert monotone_fit(TIME, FALL, rest=700.0).unit == 0
    assert monotone_fit(TIME, FALL.astype(np.float32).astype(float), rest=700.0).unit == 0


def test_the_rise_is_the_largest_above_what_was_reached():
    assert monotone_fit(np.arange(4.0), np.array([2.0, 1.0, 1.5, 1.2]), rest=0.0).rise == 0.25
