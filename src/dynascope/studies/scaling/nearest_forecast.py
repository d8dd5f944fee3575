"""The claim that each of several curves reaches one half closer to its own forecast than to any other."""

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
    """The claim that each curve reaches one half closer to its own forecast than to any other, judged for all together.

    Halfway between two forecasts, the first curve must then be above one half and the second below. The value of the
    claim is the smallest of these margins. It is unknown if no midpoint lies within the measured range.

    Args:
        name: Name of the claim.
        statement: The claim as a sentence.
        runs: Strengths that rise from zero to one, shape (places, runs, curves).
        places: Measured places, increasing.
        forecast: Forecast place of one half for each curve, increasing.
        around: The forecasts one standard error of the calibration below and above, if it has an error.
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
        # Other networks calibrate the forecast, so the squares of both errors add.
        variances = variances + number * np.max([np.zeros(len(means)), *moved], axis=0) ** 2
        # The low end is the least low end of any margin; the high end needs a bound on all margins together.
        below, above = (
            np.array([student_half(float(each), number, confidence) for each in variances])
            for confidence in (0.95, 1 - 0.05 / len(inside))
        )
        least = [float(np.min(each)) for each in (means, means - below, means + above)]
    outside = "no midpoint between two forecasts lies within the measured range"
    return Claim(name, statement, *least, least=0.0).if_known(bool(inside), outside)


def _edges(forecast: np.ndarray) -> np.ndarray:
    """Midpoints between forecasts, and their mirror images beyond the first and the last forecast."""
    middles = (forecast[1:] + forecast[:-1]) / 2
    return np.concatenate([2 * forecast[:1] - middles[:1], middles, 2 * forecast[-1:] - middles[-1:]])


def strength_at(runs: np.ndarray, places: np.ndarray, place: float) -> np.ndarray:
    """The linear interpolation at some place of each run, given runs of shape (places, runs)."""
    return np.array([np.interp(place, places, run) for run in runs.T])
