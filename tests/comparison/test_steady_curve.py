from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.comparison.jumps import crossing_times
from dynascope.comparison.steady_curve import steady_curve

TIME = np.arange(4000.0)
FALL = 0.1 + 0.9 / (1 + np.exp((TIME - 1500) / 20))


def noisy(spread, seed=0):
    return FALL * np.exp(spread * np.random.default_rng(seed).normal(size=len(TIME)))


def test_a_curve_that_falls_stays_as_it_is():
    rounded = FALL.astype(np.float32).astype(float) * (1 + 1e-7 * np.random.default_rng(0).normal(size=len(TIME)))
    for curve in (FALL, rounded):
        steady = steady_curve(TIME, curve, rest=700.0)
        assert not steady.noisy
        np.testing.assert_array_equal(steady.loss, curve)


@given(st.floats(0.01, 0.1), st.integers(0, 50))
def test_the_fit_of_a_noisy_curve_only_falls_and_keeps_its_levels_and_times(spread, seed):
    steady = steady_curve(TIME, noisy(spread, seed), rest=700.0)
    assert steady.noisy
    assert np.all(np.diff(steady.loss) <= 0)
    # Hundreds of points are averaged: of a spread of a tenth, half a percent is left.
    np.testing.assert_allclose(steady.loss[[0, 1000, -1]], FALL[[0, 1000, -1]], rtol=0.03)
    # The fall lasts a hundred steps, and three percent of the time around them are averaged.
    np.testing.assert_allclose(crossing_times(TIME, steady.loss, np.array([0.55])), 1500, rtol=0.02)


def test_the_spread_is_that_of_the_noise():
    steady = steady_curve(TIME, noisy(0.05), rest=700.0)
    # A fifth of the spread is what seven hundred points leave open, many times over.
    assert steady.error(0.0) * 701**0.5 == pytest.approx(0.05, rel=0.2)
    # The loss is a tenth at the end, and so is its noise; six percent of the time are averaged, or half of that.
    assert 0.005 / 240**0.5 / 1.5 < steady.error(3999.0) < 0.005 / 120**0.5 * 1.5


@pytest.mark.parametrize("decimals", [1, 3, 5])
def test_what_was_printed_with_a_few_decimals_is_known_to_half_of_the_last(decimals):
    steady = steady_curve(TIME, np.round(FALL, decimals), rest=700.0)
    assert steady.unit == pytest.approx(10.0**-decimals)
    assert steady.error(0.0) == pytest.approx(10.0**-decimals / 4)
    assert steady_curve(TIME, FALL, rest=700.0).unit == 0
    assert steady_curve(TIME, FALL.astype(np.float32).astype(float), rest=700.0).unit == 0


def test_the_rise_is_the_largest_above_what_was_reached():
    assert steady_curve(np.arange(4.0), np.array([2.0, 1.0, 1.5, 1.2]), rest=0.0).rise == 0.25
