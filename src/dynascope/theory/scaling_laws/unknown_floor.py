"""A power law above a floor that is not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

__all__ = ["STEEPEST", "RaisedPowerLaw", "fit_above_floor", "refit_above_floor"]

STEEPEST = 20.0  # exponents are searched from zero to this

_EXPONENTS = (0.05, 0.2, 0.5, 1.0, 2.0)
_FLOORS = (0.0, 0.5, 0.9, 0.99)  # of the least loss
_MOST_STEPS = 300
_STIFF = 1e10  # damping at which no step makes a difference any more
_ROUNDING = 1e-13  # share of a sum of squares that a step gains where rounding hides the rest


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

    Args:
        x: ln of the resource, increasing.
        y: ln L, more than three points.
    """
    exponents, shares = (each.ravel() for each in np.meshgrid(_EXPONENTS, _FLOORS))
    floors = shares * np.exp(y.min())
    # Through the middle of the points.
    levels = np.mean(np.log(np.exp(y) - floors[:, None]) + exponents[:, None] * x, axis=1)
    laws, squares = _descended(
        x, np.tile(y, (len(levels), 1)), np.column_stack([levels, exponents, floors]), float(x.mean())
    )
    return RaisedPowerLaw(*laws[np.argmin(squares)].tolist())


def refit_above_floor(
    x: Float[np.ndarray, " points"],
    curves: Float[np.ndarray, "curves points"],
    starts: Float[np.ndarray, "curves 3"],
    *,
    fixed: Sequence[int] = (),
) -> tuple[Float[np.ndarray, "curves 3"], Float[np.ndarray, " curves"]]:
    """Level, exponent and floor of curves that are near laws that are known, and the sums of squares.

    Args:
        x: ln of the resource.
        curves: ln L.
        starts: Level, exponent and floor from which to search.
        fixed: Which of the three keep their value.
    """
    # About the middle of the points level and exponent hardly depend on each other.
    return _descended(x, curves, starts, 0.0 if 0 in fixed else float(x.mean()), fixed)


def _descended(
    x: Float[np.ndarray, " points"],
    curves: Float[np.ndarray, "curves points"],
    start: Float[np.ndarray, "curves 3"],
    centre: float,
    fixed: Sequence[int] = (),
) -> tuple[Float[np.ndarray, "curves 3"], Float[np.ndarray, " curves"]]:
    """Levenberg and Marquardt's descent for all curves at once, and the sums of squares at its end."""
    size = curves.min(axis=1)  # losses are in units of the least
    z, y = x - centre, curves - size[:, None]
    laws = start - np.column_stack([start[:, 1] * centre + size, np.zeros((len(start), 2))])
    laws[:, 2] *= np.exp(-size)

    def parts(laws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        falling = np.exp(laws[:, :1] - laws[:, 1:2] * z)
        return falling, falling + laws[:, 2:]

    def sum_of_squares(laws: np.ndarray) -> np.ndarray:
        return np.sum((np.log(parts(laws)[1]) - y) ** 2, axis=1)

    squares, damping, done = sum_of_squares(laws), np.full(len(laws), 1e-3), np.zeros(len(laws), bool)
    for _ in range(_MOST_STEPS):
        falling, whole = parts(laws)
        slopes = np.stack([falling / whole, -falling * z / whole, 1 / whole], axis=-1)
        force = np.einsum("cpk,cp->ck", slopes, np.log(whole) - y)
        # A floor that is zero and is pushed below stays where it is.
        stays = (laws[:, 2] == 0) & (force[:, 2] > 0)
        slopes[stays, :, 2], force[stays, 2] = 0, 0
        slopes[..., fixed], force[:, fixed] = 0, 0
        curvature = np.einsum("cpk,cpl->ckl", slopes, slopes)
        diagonal = np.einsum("ckk->ck", curvature)
        curvature = curvature + np.eye(3) * (damping[:, None] * diagonal + 1e-300)[:, None]
        step = np.linalg.solve(curvature, force[..., None])[..., 0]
        trial = np.clip(laws - step, (-np.inf, 0.0, 0.0), (np.inf, STEEPEST, np.inf))
        # A step too long may overflow or underflow, and is not taken.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = sum_of_squares(trial)
        better = found < squares
        done |= better & (squares - found < _ROUNDING * squares)
        laws, squares = np.where(better[:, None], trial, laws), np.where(better, found, squares)
        damping = np.where(better, np.maximum(damping / 5, 1e-12), damping * 4)
        if np.all(done | (damping > _STIFF)):
            break
    laws[:, 0] += laws[:, 1] * centre + size
    laws[:, 2] *= np.exp(size)
    return laws, squares
