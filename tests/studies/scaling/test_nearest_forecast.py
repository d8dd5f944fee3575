from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies.scaling.nearest_forecast import nearest_claim, strength_at

PLACES, FORECAST = np.array([1.0, 2.0, 3.0, 6.0, 7.0]), np.array([1.5, 4.5])


def test_the_least_of_several_means_lies_in_its_interval_as_often_as_it_says():
    draw, covered = np.random.default_rng(0), 0
    for _ in range(200):
        # Skills are at one strength everywhere: above one half at the ends of their neurons, and not yet at the start.
        runs = 0.8 + 0.1 * draw.normal(size=(5, 4, 2))
        claim = nearest_claim("forecast", "Near.", runs, PLACES, FORECAST)
        covered += claim.interval[0] <= -0.3 <= claim.interval[1]
    # 95 expected at least, deviation 1.5 by the binomial law; three of four means are far from the least.
    assert covered >= 0.92 * 200


@pytest.mark.parametrize(("factor", "outcome"), [(0.9, "holds"), (0.3, "does not hold"), (2.5, "does not hold")])
def test_things_that_come_near_their_own_forecast_hold_and_those_near_another_do_not(factor, outcome):
    rise = [np.clip(PLACES / (factor * each) - 0.5, 0, 1) for each in FORECAST]
    runs = np.stack(rise, axis=1)[:, None] + np.zeros((1, 3, 1))
    assert nearest_claim("forecast", "Near.", runs, PLACES, FORECAST).outcome == outcome


def test_what_lies_beyond_the_places_decides_nothing():
    claim = nearest_claim("forecast", "Near.", np.zeros((5, 3, 2)), PLACES, np.array([20.0, 30.0]))
    assert claim.outcome == "undecided"
    np.testing.assert_allclose(strength_at(np.array([[0.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0]), 1.5), [0.5, 2.0])


def test_forecasts_an_error_away_widen_the_interval_as_squares_add():
    rise = np.clip(PLACES / 3 - np.array([[0.0], [1.0]]), 0, 1).T
    runs = np.stack([rise - 0.05, rise + 0.05], axis=1)
    known = nearest_claim("forecast", "Near.", runs, PLACES, FORECAST)
    # Half way between the forecasts is at three, where both strengths change by a sixth in half a neuron.
    open_ = nearest_claim("forecast", "Near.", runs, PLACES, FORECAST, [FORECAST - 0.5, FORECAST + 0.5])
    assert open_.value == known.value
    # Of two runs a tenth apart the standard error is a twentieth.
    np.testing.assert_allclose((open_.value - open_.low) / (known.value - known.low), np.hypot(1, (1 / 6) / 0.05))
