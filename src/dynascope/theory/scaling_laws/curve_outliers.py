"""Find the points of a curve that contradict the power law of its other points."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from dynascope.theory.scaling_laws.forward_search import Family, outlying_points
from dynascope.theory.scaling_laws.misfit import EXACT, FEWEST
from dynascope.theory.scaling_laws.straight_window import line_through
from dynascope.theory.scaling_laws.unknown_floor import STEEPEST, RaisedPowerLaw, raised_residuals, raised_starts

__all__ = ["suspect_points"]


def suspect_points(
    x: Float[np.ndarray, " points"], y: Float[np.ndarray, " points"], law: RaisedPowerLaw, *, floor_known: bool
) -> Bool[np.ndarray, " points"]:
    """Mark the points whose losses contradict the power law of the others, by `outlying_points`.

    None is marked among fewer than six points, or if all are within 0.1 % of the law.

    Args:
        x: ln of the resource.
        y: ln L.
        law: Fitted to all points.
        floor_known: Whether the floor was given: L is what is above it.
    """
    if len(x) < FEWEST or np.max(np.abs(y - law.logarithm(x))) < EXACT:
        return np.zeros(len(x), bool)
    # About the middle of the points, in units of the mean loss, the numbers of the law are of order one.
    z, rest = x - x.mean(), y - y.mean()
    numbers = 2 if floor_known else 3

    def residuals(laws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        whole = np.pad(laws, ((0, 0), (0, 3 - numbers)))
        found, slopes = raised_residuals(whole, z, rest)
        return found, slopes[..., :numbers]

    def start(rows: np.ndarray) -> np.ndarray:
        if floor_known:
            return np.array(line_through(z[rows], rest[rows]))
        starts = raised_starts(z[rows], rest[rows])
        return starts[np.argmin(np.sum(residuals(starts)[0][:, rows] ** 2, axis=1))]

    lower, upper = np.array([-np.inf, -np.inf if floor_known else 0.0, 0.0]), np.array([np.inf, STEEPEST, np.inf])
    centred = np.array([law.level - law.exponent * x.mean() - y.mean(), law.exponent, law.floor * np.exp(-y.mean())])
    family = Family(residuals, start, lower[:numbers], upper[:numbers], (z,))
    return outlying_points(family, centred[:numbers])
