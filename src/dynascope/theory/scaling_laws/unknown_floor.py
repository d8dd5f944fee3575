"""A power law above a floor that is not known."""

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

STEEPEST = 20.0  # exponents are searched from zero to this

_EXPONENTS = (0.05, 0.2, 0.5, 1.0, 2.0)
_ROUGH = 1e-8  # share of a sum of squares, of which intervals compare percents
_FLOORS = (0.0, 0.5, 0.9, 0.99)  # of the least loss


class RaisedPowerLaw(NamedTuple):
    """L = floor + e^level x^−exponent."""

    level: float
    exponent: float
    floor: float

    def logarithm(self, x: np.ndarray) -> np.ndarray:
        """The law as ln L over ln of the resource."""
        return np.log(self.floor + np.exp(self.level - self.exponent * x))


def fit_above_floor(x: Float[np.ndarray, " points"], y: Float[np.ndarray, " points"]) -> RaisedPowerLaw:
    """Least squares of ln L, which weighs all points alike if their scatter is a share of the loss.

    The sum of squares has several minima, so that the search starts from exponents and floors all over the range.
    """
    starts = raised_starts(x, y)
    laws, squares = _descended(x, np.tile(y, (len(starts), 1)), starts, float(x.mean()))
    return RaisedPowerLaw(*laws[np.argmin(squares)].tolist())


def raised_starts(x: Float[np.ndarray, " points"], y: Float[np.ndarray, " points"]) -> Float[np.ndarray, "starts 3"]:
    """Laws through the middle of the points, with exponents and floors all over the range."""
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
    """Level, exponent and floor of curves that are near laws that are known, and the sums of squares."""
    # About the middle of the points level and exponent hardly depend on each other.
    return _descended(x, curves, starts, 0.0 if 0 in fixed else float(x.mean()), fixed, _ROUGH)


def raised_residuals(
    laws: Float[np.ndarray, "laws 3"], x: Float[np.ndarray, " points"], y: Float[np.ndarray, "*laws points"]
) -> tuple[Float[np.ndarray, "laws points"], Float[np.ndarray, "laws points 3"]]:
    """ln(floor + e^level x^−exponent) − ln L and its derivatives by level, exponent and floor."""
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
    """The descent of all curves at once, and the sums of squares at its end."""
    size = curves.min(axis=1)  # losses are in units of the least
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
