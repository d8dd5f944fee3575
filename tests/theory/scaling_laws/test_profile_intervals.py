from __future__ import annotations

import numpy as np
import pytest

from dynascope.theory.scaling_laws.profile_intervals import EXPONENT, FLOOR, LEVEL, profile_interval, slopes_of
from dynascope.theory.scaling_laws.unknown_floor import RaisedPowerLaw, fit_above_floor

X = np.linspace(7, 7 + 2.5 * np.log(10), 24)
DRAWS = 60


def covered(law, runs, own, shared, numbers=(EXPONENT,), seed=0):
    """In which shares of draws intervals of 95 % hold the truth: scatter of each point, and of each whole run."""
    draw, hits = np.random.default_rng(seed), np.zeros(len(numbers))
    tilts = np.stack([np.ones_like(X), X - X.mean()])
    for _ in range(DRAWS):
        noise = own * draw.normal(size=(runs, len(X))) + draw.normal(size=(runs, 2)) @ (shared * tilts)
        curves = np.exp(law.logarithm(X) + noise)
        found = fit_above_floor(X, np.log(curves.mean(axis=0)))
        for place, which in enumerate(numbers):
            low, high = profile_interval(X, curves, found, which, 0.95)
            hits[place] += low <= law[which] <= high
    return hits / DRAWS


# Of 60 draws at 95 % the share scatters by 2.8 %; three and a half of that are 10 %. An interval of one standard
# deviation would hold the truth in 68 %.
LEAST = 0.85


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.05, 0.4, 0.8])
def test_one_run_of_independent_points_is_covered(share):
    last = float(np.exp(np.log(2) - 0.35 * X[-1]))
    law = RaisedPowerLaw(np.log(2), 0.35, share / (1 - share) * last)
    assert min(covered(law, 1, 0.01, 0.0, (EXPONENT, FLOOR))) >= LEAST


@pytest.mark.slow
@pytest.mark.parametrize("runs", [2, 3, 8])
def test_runs_that_differ_as_wholes_are_covered(runs):
    law = RaisedPowerLaw(np.log(2), 0.35, 0.02)
    assert covered(law, runs, 0.003, 0.01) >= LEAST


def test_an_interval_of_too_little_confidence_would_not_cover():
    # The same draws with the interval of one standard deviation.
    draw, law, hits = np.random.default_rng(0), RaisedPowerLaw(np.log(2), 0.35, 0.02), 0
    for _ in range(60):
        curves = np.exp(law.logarithm(X) + 0.01 * draw.normal(size=(1, len(X))))
        found = fit_above_floor(X, np.log(curves[0]))
        low, high = profile_interval(X, curves, found, EXPONENT, 0.68)
        hits += low <= 0.35 <= high
    # 41 of 60 are expected, with a standard deviation of 3.6.
    assert 29 <= hits <= 53


def test_without_scatter_the_interval_is_the_estimate():
    law = RaisedPowerLaw(0.0, 0.5, 0.1)
    found = fit_above_floor(X, law.logarithm(X))
    for which in (LEVEL, EXPONENT, FLOOR):
        low, high = profile_interval(X, np.exp(law.logarithm(X))[None], found, which, 0.95)
        # Rounding of the losses, and of a minimum that it makes flat.
        assert high - low < 1e-6
        assert low <= found[which] <= high


def test_of_a_line_it_is_that_of_the_textbook():
    draw = np.random.default_rng(3)
    y = 1 - 0.5 * X + 0.05 * draw.normal(size=len(X))
    centred = X - X.mean()
    slope = (y @ centred) / (centred @ centred)
    residual = y - y.mean() - slope * centred
    error = np.sqrt(residual @ residual / (len(X) - 2) / (centred @ centred))
    law = RaisedPowerLaw(float(y.mean() - slope * X.mean()), float(-slope), 0.0)
    low, high = profile_interval(X, np.exp(y)[None], law, EXPONENT, 0.95, fixed=(FLOOR,))
    # Student's t with 22 degrees of freedom; the crossing is interpolated.
    assert (high - low) / 2 == pytest.approx(2.0739 * error, rel=1e-3)


def test_where_nothing_is_contradicted_the_interval_ends_where_values_end():
    noise = 0.05 * np.random.default_rng(0).normal(size=(1, len(X)))
    curves = np.exp(RaisedPowerLaw(0.0, 0.1, 0.0).logarithm(X) + noise)
    found = fit_above_floor(X, np.log(curves[0]))
    low, high = profile_interval(X, curves, found, FLOOR, 0.95)
    assert low == 0
    assert high > found.floor


def test_slopes_are_those_between_neighbours_and_finite_at_any_law():
    law = np.array([0.3, 0.4, 0.05])
    exact = slopes_of(X, law[None])[0]
    for k in range(3):
        step = 1e-6 * np.eye(3)[k]
        difference = RaisedPowerLaw(*(law + step)).logarithm(X) - RaisedPowerLaw(*(law - step)).logarithm(X)
        np.testing.assert_allclose(exact[:, k], difference / 2e-6, rtol=1e-6)
    assert np.isfinite(slopes_of(X, np.array([[-700.0, 20.0, 0.1], [0.0, 20.0, 1e-300], [0.0, 0.1, 0.0]]))).all()
