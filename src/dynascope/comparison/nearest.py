"""Whether several things come nearer to their own forecast than to that of another."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from dynascope.comparison.claim import Claim
from dynascope.comparison.interval import student_half

__all__ = ["covering", "nearest_claim", "strength_at"]


def nearest_claim(name: str, statement: str, runs: np.ndarray, places: np.ndarray, forecast: np.ndarray) -> Claim:
    """Half of each is reached nearer to its own forecast than to any other; all of them are judged together.

    So half way between two forecasts there is more than half of the one and less than half of the other. The value is
    by how much it is more, or less, whichever is least; it is not known where no half way lies within the places.

    Args:
        name: Of the claim.
        statement: The claim in words.
        runs: Strengths that rise from none to one, shape (places, runs, things).
        places: Where they were measured, increasing.
        forecast: Where half of each is forecast, increasing.
    """
    middles = (forecast[1:] + forecast[:-1]) / 2
    # The first has no neighbour on its left, and the last none on its right: as far there as on the other.
    edges = np.concatenate([2 * forecast[:1] - middles[:1], middles, 2 * forecast[-1:] - middles[-1:]])
    count = len(forecast)
    sides = [(k, k, -1) for k in range(count)] + [(k, k + 1, 1) for k in range(count)]
    over = np.array(
        [
            sign * (strength_at(runs[..., each], places, edges[edge]) - 0.5)
            for each, edge, sign in sides
            if len(middles) and places[0] <= edges[edge] <= places[-1]
        ]
    )
    least = [np.nan] * 3
    if len(over):
        means, variances = over.mean(axis=1), over.var(axis=1, ddof=1)
        # All of them lie within their intervals with the probability of the claim, so that the least does.
        halves = [student_half(float(each), over.shape[1], 1 - 0.05 / len(over)) for each in variances]
        least = [float(np.min(each)) for each in (means, means - halves, means + halves)]
    return Claim(name, statement, *least, least=0.0)


def covering(claims: Sequence[Claim]) -> Claim:
    """The middle one of claims of the same, with an interval that covers those of all."""
    middle = claims[len(claims) // 2]
    if np.isnan(middle.value):
        return middle
    low, high = (np.array([getattr(claim, end) for claim in claims]) for end in ("low", "high"))
    return dataclasses.replace(middle, low=float(np.nanmin(low)), high=float(np.nanmax(high)))


def strength_at(runs: np.ndarray, places: np.ndarray, place: float) -> np.ndarray:
    """What each of the runs, of shape (places, runs), has at some place, on a line between the two around it."""
    return np.array([np.interp(place, places, run) for run in runs.T])
