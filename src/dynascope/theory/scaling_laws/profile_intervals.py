"""Confidence intervals of a fitted power law, by what each value would cost if all else were fitted again."""

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
# How far from the estimate to look, in units of what an interval would be if the law were linear in its numbers.
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
    """The values of a number of a fitted law with which the runs agree, all other numbers fitted again for each.

    With one run the scatter of its points about the law, taken to be independent, tells how much a sum of squares may
    grow. With several the scatter among them does, which may be of whole curves: each run says how it would change the
    value (the slope of the sum of squares, without what the other numbers make up for), and these are compared with
    zero by Student's t with one degree of freedom less than runs.

    Returns:
        Its ends; that of what is possible (zero, infinity) where no value is contradicted.
    """
    mean = runs.mean(axis=0)
    y, found = np.log(mean), np.array(law)
    freedom = len(runs) - 1 if len(runs) > 1 else len(x) - 3 + len(fixed)
    allowed = float(student.ppf((1 + confidence) / 2, freedom))
    residual = y - law.logarithm(x)
    deviations = runs / mean - 1 if len(runs) > 1 else residual[None] * math.sqrt(len(x) / freedom)
    own = _alone(x, found[None], which, fixed)
    usual = allowed * float(_scatter(deviations, own, len(runs))[0] / np.sum(own**2))
    if not usual > 0:
        return float(found[which]), float(found[which])

    def against(values: np.ndarray) -> np.ndarray:
        starts = np.tile(found, (len(values), 1))
        starts[:, which] = values
        laws, squares = refit_above_floor(x, np.tile(y, (len(values), 1)), starts, fixed=(which, *fixed))
        if len(runs) > 1:
            return _against(x, y, deviations, laws, which, fixed)
        return np.sqrt(np.maximum(squares - residual @ residual, 0) * freedom / (residual @ residual))

    def end(side: int) -> float:
        values, told = found[which : which + 1], np.zeros(1)
        for reach in (_NEAR, _FAR):
            further = np.clip(found[which] + side * usual * reach, *_SEARCHED[which])
            values, told = np.append(values, further), np.append(told, against(further))
            if told.max() > allowed:
                return crossing(values, told, allowed)
        return float(_BOUNDS[which][side > 0])

    return end(-1), end(1)


def _against(
    x: np.ndarray, y: np.ndarray, deviations: np.ndarray, laws: np.ndarray, which: int, fixed: Sequence[int]
) -> Float[np.ndarray, " laws"]:
    """Student's t of what the runs say of each value."""
    own = _alone(x, laws, which, fixed)
    rest = np.array([y - RaisedPowerLaw(*law).logarithm(x) for law in laws])
    against = np.abs(np.sum(own * rest, axis=1)) / np.maximum(_scatter(deviations, own, len(deviations)), 1e-300)
    return np.where(np.isfinite(against), against, np.inf)


def _scatter(deviations: np.ndarray, own: np.ndarray, runs: int) -> np.ndarray:
    """Standard error of the mean over runs of what each says; of one run, by the scatter of its points."""
    if runs > 1:
        return np.std(deviations @ own.T, axis=0, ddof=1) / math.sqrt(runs)
    return np.linalg.norm(deviations) / math.sqrt(deviations.size) * np.linalg.norm(own, axis=1)


def slopes_of(x: Float[np.ndarray, " points"], laws: Float[np.ndarray, "laws 3"]) -> Float[np.ndarray, "laws points 3"]:
    """Derivatives of ln L by level, exponent and floor."""
    level, exponent, floor = (laws[:, k, None] for k in range(3))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        inverse = np.exp(exponent * x - level)
        share = np.where(floor > 0, 1 / (1 + floor * inverse), 1.0)
        last = np.where(np.isfinite(inverse), inverse * share, 1 / floor)
    return np.stack([share, -share * x, last], axis=-1)


def _alone(x: np.ndarray, laws: np.ndarray, which: int, fixed: Sequence[int]) -> Float[np.ndarray, "laws points"]:
    """The slopes in one number, without what changes of the others make up for; a floor of zero does not change."""
    slopes = slopes_of(x, laws)
    slopes[laws[:, FLOOR] == 0, :, FLOOR] *= which == FLOOR
    mine, others = slopes[..., which], slopes[..., [k for k in range(3) if k not in (which, *fixed)]]
    sizes = np.linalg.norm(others, axis=1, keepdims=True)
    axes, kept, _ = np.linalg.svd(others / np.where(sizes > 0, sizes, 1), full_matrices=False)
    axes = axes * (kept > len(x) * np.finfo(float).eps * kept.max(axis=1, keepdims=True))[:, None, :]
    return mine - np.einsum("lpk,lqk,lq->lp", axes, axes, mine, optimize=True)


def crossing(values: Float[np.ndarray, " values"], against: Float[np.ndarray, " values"], allowed: float) -> float:
    """Where more speaks against a value than is allowed, for the first time from the estimate on, which is the first.

    Example:
        >>> crossing(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 3.0]), 2.0)
        2.5
    """
    k = int(np.argmax(against > allowed))
    share = (allowed - against[k - 1]) / (against[k] - against[k - 1])
    return float(values[k - 1] + share * (values[k] - values[k - 1]))
