"""Profile confidence intervals of a fitted power law."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.stats import t as student

from dynascope.theory.scaling_laws.unknown_floor import STEEPEST, RaisedPowerLaw, refit_above_floor

__all__ = ["EXPONENT", "FLOOR", "LEVEL", "crossing", "profile_interval", "slopes_of"]

LEVEL, EXPONENT, FLOOR = range(3)
_BOUNDS = ((-np.inf, np.inf), (0.0, np.inf), (0.0, np.inf))
_SEARCHED = np.array([[-np.inf, np.inf], [0.0, STEEPEST], [0.0, np.inf]])
# Distances from the estimate at which to evaluate the profile, in units of the half width of the linearised interval.
# The far ones are slow to fit, and few intervals end there.
_NEAR = np.array([0.3, 0.6, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0])
_FAR = np.array([5.0, 10.0, 30.0, 100.0])


def profile_interval(
    x: Float[np.ndarray, " points"],
    runs: Float[np.ndarray, "runs points"],
    law: RaisedPowerLaw,
    which: int,
    confidence: float,
    *,
    fixed: Sequence[int] = (),
) -> tuple[float, float]:
    """Compute the profile interval of a coefficient of a fitted law, with all other coefficients refitted.

    For a single run, the interval ends where the increase in the sum of squares is incompatible with the scatter of the
    points about the law. The points are assumed to scatter independently. For several runs, the interval is based on
    the scatter among the runs, which may affect whole curves. Each run contributes a score: the derivative of the sum
    of squares with respect to the coefficient, orthogonalised against the derivatives with respect to the others. The
    mean score is compared with zero by Student's t test with n − 1 degrees of freedom for n runs.

    Returns:
        The lower and upper ends. If the runs do not bound the coefficient on one side, that end is the limit of its
        range (zero or infinity).
    """
    mean = runs.mean(axis=0)
    y, found = np.log(mean), np.array(law)
    freedom = len(runs) - 1 if len(runs) > 1 else len(x) - 3 + len(fixed)
    allowed = float(student.ppf((1 + confidence) / 2, freedom))
    residual = y - law.logarithm(x)
    deviations = runs / mean - 1 if len(runs) > 1 else residual[None] * math.sqrt(len(x) / freedom)
    slopes = _orthogonal_slopes(x, found[None], which, fixed)
    usual = allowed * float(_standard_error(deviations, slopes, len(runs))[0] / np.sum(slopes**2))
    if not usual > 0:
        return float(found[which]), float(found[which])

    def statistic(values: np.ndarray) -> np.ndarray:
        starts = np.tile(found, (len(values), 1))
        starts[:, which] = values
        laws, squares = refit_above_floor(x, np.tile(y, (len(values), 1)), starts, fixed=(which, *fixed))
        if len(runs) > 1:
            return _t_statistic(x, y, deviations, laws, which, fixed)
        return np.sqrt(np.maximum(squares - residual @ residual, 0) * freedom / (residual @ residual))

    def end(side: int) -> float:
        values, statistics = found[which : which + 1], np.zeros(1)
        for distances in (_NEAR, _FAR):
            further = np.clip(found[which] + side * usual * distances, *_SEARCHED[which])
            values, statistics = np.append(values, further), np.append(statistics, statistic(further))
            if statistics.max() > allowed:
                return crossing(values, statistics, allowed)
        return float(_BOUNDS[which][side > 0])

    return end(-1), end(1)


def _t_statistic(
    x: np.ndarray, y: np.ndarray, deviations: np.ndarray, laws: np.ndarray, which: int, fixed: Sequence[int]
) -> Float[np.ndarray, " laws"]:
    """Student's t statistic of the mean score over runs, for each law (one per value of the coefficient)."""
    slopes = _orthogonal_slopes(x, laws, which, fixed)
    rest = np.array([y - RaisedPowerLaw(*law).logarithm(x) for law in laws])
    error = np.maximum(_standard_error(deviations, slopes, len(deviations)), 1e-300)
    statistics = np.abs(np.sum(slopes * rest, axis=1)) / error
    return np.where(np.isfinite(statistics), statistics, np.inf)


def _standard_error(deviations: np.ndarray, slopes: np.ndarray, runs: int) -> np.ndarray:
    """Standard error of the mean score over runs; for a single run, from the scatter of its points."""
    if runs > 1:
        return np.std(deviations @ slopes.T, axis=0, ddof=1) / math.sqrt(runs)
    return np.linalg.norm(deviations) / math.sqrt(deviations.size) * np.linalg.norm(slopes, axis=1)


def slopes_of(x: Float[np.ndarray, " points"], laws: Float[np.ndarray, "laws 3"]) -> Float[np.ndarray, "laws points 3"]:
    """Derivatives of ln L with respect to level, exponent and floor."""
    level, exponent, floor = (laws[:, k, None] for k in range(3))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        inverse = np.exp(exponent * x - level)
        share = np.where(floor > 0, 1 / (1 + floor * inverse), 1.0)
        last = np.where(np.isfinite(inverse), inverse * share, 1 / floor)
    return np.stack([share, -share * x, last], axis=-1)


def _orthogonal_slopes(
    x: np.ndarray, laws: np.ndarray, which: int, fixed: Sequence[int]
) -> Float[np.ndarray, "laws points"]:
    """Derivatives with respect to one coefficient, orthogonalised against the others; a zero floor is held fixed."""
    slopes = slopes_of(x, laws)
    slopes[laws[:, FLOOR] == 0, :, FLOOR] *= which == FLOOR
    mine, others = slopes[..., which], slopes[..., [k for k in range(3) if k not in (which, *fixed)]]
    sizes = np.linalg.norm(others, axis=1, keepdims=True)
    axes, kept, _ = np.linalg.svd(others / np.where(sizes > 0, sizes, 1), full_matrices=False)
    axes = axes * (kept > len(x) * np.finfo(float).eps * kept.max(axis=1, keepdims=True))[:, None, :]
    return mine - np.einsum("lpk,lqk,lq->lp", axes, axes, mine, optimize=True)


def crossing(values: Float[np.ndarray, " values"], statistics: Float[np.ndarray, " values"], allowed: float) -> float:
    """Interpolate the first value whose statistic exceeds `allowed`, counted from the estimate `values[0]`.

    Example:
        >>> crossing(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 3.0]), 2.0)
        2.5
    """
    k = int(np.argmax(statistics > allowed))
    share = (allowed - statistics[k - 1]) / (statistics[k] - statistics[k - 1])
    return float(values[k - 1] + share * (values[k] - values[k - 1]))
