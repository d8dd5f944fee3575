"""Whether several things come nearer to their own forecast than to that of another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynascope.comparison.claim import Claim
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
    """Half of each is reached nearer to its own forecast than to any other; all of them are judged together.

    So half way between two forecasts there is more than half of the one and less than half of the other. The value is
    by how much it is more, or less, whichever is least; it is not known where no half way lies within the places.

    Args:
        name: Of the claim.
        statement: The claim in words.
        runs: Strengths that rise from none to one, shape (places, runs, things).
        places: Where they were measured, increasing.
        forecast: Where half of each is forecast, increasing.
        around: The forecasts that are a standard error of the calibration less and more, where it has one.
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
        # The networks that calibrate are others, so that both errors add as squares.
        variances = variances + number * np.max([np.zeros(len(means)), *moved], axis=0) ** 2
        # Below the least mean lies the low end of that one, whichever it is; above it, only one above them all.
        below, above = (
            np.array([student_half(float(each), number, confidence) for each in variances])
            for confidence in (0.95, 1 - 0.05 / len(inside))
        )
        least = [float(np.min(each)) for each in (means, means - below, means + above)]
    outside = "no midpoint between two forecasts lies within the measured range"
    return Claim(name, statement, *least, least=0.0).if_known(bool(inside), outside)


def _edges(forecast: np.ndarray) -> np.ndarray:
    """Half way between forecasts; the first and the last have one neighbour, and reach as far on the other side."""
    middles = (forecast[1:] + forecast[:-1]) / 2
    return np.concatenate([2 * forecast[:1] - middles[:1], middles, 2 * forecast[-1:] - middles[-1:]])


def strength_at(runs: np.ndarray, places: np.ndarray, place: float) -> np.ndarray:
    """What each of the runs, of shape (places, runs), has at some place, on a line between the two around it."""
    return np.array([np.interp(place, places, run) for run in runs.T])
