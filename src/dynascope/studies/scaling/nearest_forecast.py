"""The claim that each of several curves reaches one half nearest to its own forecast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynascope.comparison import Claim
from dynascope.comparison.interval import student_half

__all__ = ["nearest_claim", "strength_at"]


def nearest_claim(
    name: str,
    statement: str,
    runs: np.ndarray,
    places: np.ndarray,
    forecast: np.ndarray,
    around: Sequence[np.ndarray] = (),
) -> Claim:
    """The joint claim that each curve reaches one half nearer to its own forecast than to that of any other curve.

    The claim is equivalent to conditions at the midpoint between neighbouring forecasts: the earlier curve must be
    above one half there, and the later curve below. The value of the claim is the smallest of these margins. The claim
    is undecided if no midpoint lies within the measured range.

    Args:
        name: Name of the claim.
        statement: The claim as a sentence.
        runs: Strengths that rise from zero to one, shape (places, runs, curves).
        places: Positions at which the curves were measured, increasing.
        forecast: Forecast position of one half for each curve, increasing.
        around: The forecasts for calibrations one standard error lower and higher, if the calibration has an error.
    """
    edges = _edges(forecast)
    count = len(forecast)
    sides = [(k, k, -1) for k in range(count)] + [(k, k + 1, 1) for k in range(count)]
    inside = [side for side in sides if count > 1 and places[0] <= edges[side[1]] <= places[-1]]

    def over(ends: np.ndarray) -> np.ndarray:
        found = [sign * (strength_at(runs[..., each], places, ends[edge]) - 0.5) for each, edge, sign in inside]
        return np.array(found)

    least = [np.nan] * 3
    if inside:
        at_forecast = over(edges)
        means, variances = at_forecast.mean(axis=1), at_forecast.var(axis=1, ddof=1)
        number = at_forecast.shape[1]
        moved = [np.abs(over(_edges(each)).mean(axis=1) - means) for each in around]
        # The forecast is calibrated on independent networks, so the variances add.
        variances = variances + number * np.max([np.zeros(len(means)), *moved], axis=0) ** 2
        # The lower end is the smallest lower end of any margin; the upper end needs a simultaneous bound.
        below, above = (
            np.array([student_half(float(each), number, confidence) for each in variances])
            for confidence in (0.95, 1 - 0.05 / len(inside))
        )
        least = [float(np.min(each)) for each in (means, means - below, means + above)]
    outside = "no midpoint between two forecasts lies within the measured range"
    return Claim(name, statement, *least, least=0.0).if_known(bool(inside), outside)


def _edges(forecast: np.ndarray) -> np.ndarray:
    """Midpoints between forecasts, and their mirror images beyond the first and last forecasts."""
    middles = (forecast[1:] + forecast[:-1]) / 2
    return np.concatenate([2 * forecast[:1] - middles[:1], middles, 2 * forecast[-1:] - middles[-1:]])


def strength_at(runs: np.ndarray, places: np.ndarray, place: float) -> np.ndarray:
    """Each run of shape (places, runs), linearly interpolated at one position."""
    return np.array([np.interp(place, places, run) for run in runs.T])
