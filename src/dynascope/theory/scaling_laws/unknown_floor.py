"""Least-squares fit of a power law above an unknown floor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.theory.scaling_laws.descent import descend

__all__ = [
    "STEEPEST",
    "RaisedPowerLaw",
    "fit_above_floor",
    "raised_residuals",
    "raised_starts",
    "refit_above_floor",
]

STEEPEST = 20.0  # upper bound of the exponent; the lower bound is zero

_EXPONENTS = (0.05, 0.2, 0.5, 1.0, 2.0)
_ROUGH = 1e-8  # relative precision of a sum of squares; intervals compare differences of some percent
_FLOORS = (0.0, 0.5, 0.9, 0.99)  # fractions of the smallest loss


class RaisedPowerLaw(NamedTuple):
    """Power law above a floor, L = floor + e^level x^−exponent."""

    level: float
    exponent: float
    floor: float

    def logarithm(self, x: np.ndarray) -> np.ndarray:
        """Return ln L; x is the log resource."""
        return np.log(self.floor + np.exp(self.level - self.exponent * x))


def fit_above_floor(x: Float[np.ndarray, " points"], y: Float[np.ndarray, " points"]) -> RaisedPowerLaw:
    """Fit the law by least squares of ln L, so points whose scatter is proportional to the loss have equal weight.

    The sum of squares has several local minima, so the search starts from a grid of exponents and floors.
    """
    starts = raised_starts(x, y)
    laws, squares = _descended(x, np.tile(y, (len(starts), 1)), starts, float(x.mean()))
    return RaisedPowerLaw(*laws[np.argmin(squares)].tolist())


def raised_starts(x: Float[np.ndarray, " points"], y: Float[np.ndarray, " points"]) -> Float[np.ndarray, "starts 3"]:
    """Return initial laws on a grid of exponents and floors; each level fits the mean of the points."""
    exponents, shares = (each.ravel() for each in np.meshgrid(_EXPONENTS, _FLOORS))
    floors = shares * np.exp(y.min())
    levels = np.mean(np.log(np.exp(y) - floors[:, None]) + exponents[:, None] * x, axis=1)
    return np.column_stack([levels, exponents, floors])


def refit_above_floor(
    x: Float[np.ndarray, " points"],
    curves: Float[np.ndarray, "curves points"],
    starts: Float[np.ndarray, "curves 3"],
    *,
    fixed: Sequence[int] = (),
) -> tuple[Float[np.ndarray, "curves 3"], Float[np.ndarray, " curves"]]:
    """Fit level, exponent and floor of each curve from a given initial law; return the laws and sums of squares."""
    # With x measured from the mean of the points, level and exponent are nearly uncorrelated.
    return _descended(x, curves, starts, 0.0 if 0 in fixed else float(x.mean()), fixed, _ROUGH)


def raised_residuals(
    laws: Float[np.ndarray, "laws 3"], x: Float[np.ndarray, " points"], y: Float[np.ndarray, "*laws points"]
) -> tuple[Float[np.ndarray, "laws points"], Float[np.ndarray, "laws points 3"]]:
    """Return ln(floor + e^level x^−exponent) − ln L and its derivatives with respect to level, exponent and floor."""
    falling = np.exp(laws[:, :1] - laws[:, 1:2] * x)
    loss = falling + laws[:, 2:]
    return np.log(loss) - y, np.stack([falling / loss, -falling * x / loss, 1 / loss], axis=-1)


def _descended(
    x: Float[np.ndarray, " points"],
    curves: Float[np.ndarray, "curves points"],
    start: Float[np.ndarray, "curves 3"],
    centre: float,
    fixed: Sequence[int] = (),
    precision: float = 1e-13,
) -> tuple[Float[np.ndarray, "curves 3"], Float[np.ndarray, " curves"]]:
    """Fit all curves at once and return their laws and sums of squares."""
    size = curves.min(axis=1)  # losses are in units of the smallest loss
    z, y = x - centre, curves - size[:, None]
    laws = start - np.column_stack([start[:, 1] * centre + size, np.zeros((len(start), 2))])
    laws[:, 2] *= np.exp(-size)
    free = [k for k in range(3) if k not in fixed]

    def residuals(numbers: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        whole = laws[places]
        whole[:, free] = numbers
        rest, slopes = raised_residuals(whole, z, y[places])
        return rest, slopes[..., free]

    bounds = np.array([(-np.inf, 0.0, 0.0), (np.inf, STEEPEST, np.inf)])[:, free]
    laws[:, free], squares = descend(residuals, laws[:, free], *bounds, precision=precision)
    laws[:, 0] += laws[:, 1] * centre + size
    laws[:, 2] *= np.exp(size)
    return laws, squares
