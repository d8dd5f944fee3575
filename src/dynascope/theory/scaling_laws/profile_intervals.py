"""Confidence intervals of a fitted power law, by what each value would cost if all else were fitted again."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.stats import t as student

from dynascope.theory.scaling_laws.unknown_floor import STEEPEST, RaisedPowerLaw, refit_above_floor

__all__ = ["EXPONENT", "FLOOR", "LEVEL", "profile_interval", "slopes_of"]

LEVEL, EXPONENT, FLOOR = range(3)
_BOUNDS = ((-np.inf, np.inf), (0.0, np.inf), (0.0, np.inf))
_SEARCHED = np.array([[-np.inf, np.inf], [0.0, STEEPEST], [0.0, np.inf]])
# How far from the estimate to look, in units of what an interval would be if the law were linear in its numbers.
_REACH = np.array([0.3, 0.6, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0])


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

    Args:
        x: ln of the resource.
        runs: L > 0.
        law: Fitted to the logarithm of their mean.
        which: The number: level, exponent or floor.
        confidence: Of the interval.
        fixed: Numbers that are known.

    Returns:
        Its ends; that of what is possible (zero, infinity) where no value is contradicted.
    """
    mean = runs.mean(axis=0)
    y, found = np.log(mean), np.array(law)
    freedom = len(runs) - 1 if len(runs) > 1 else len(x) - 3 + len(fixed)
    allowed = float(student.ppf((1 + confidence) / 2, freedom))
    residual = y - law.logarithm(x)
    deviations = runs / mean - 1 if len(runs) > 1 else residual[None] * math.sqrt(len(x) / freedom)
    own = _alone(x, found, which, fixed)
    scatter = _scatter(deviations, own, len(runs))
    usual = allowed * scatter / (own @ own)
    if not usual > 0:
        return float(found[which]), float(found[which])
    low, high = _BOUNDS[which]
    values = np.clip(found[which] + usual * np.concatenate([-_REACH, _REACH]), *_SEARCHED[which])
    starts = np.tile(found, (len(values), 1))
    starts[:, which] = values
    laws, squares = refit_above_floor(x, np.tile(y, (len(values), 1)), starts, fixed=(which, *fixed))
    if len(runs) > 1:
        against = np.array([_against(x, y, deviations, each, which, fixed) for each in laws])
    else:
        against = np.sqrt(np.maximum(squares - residual @ residual, 0) * freedom / (residual @ residual))
    half = len(_REACH)
    return (
        _crossing(values[:half], against[:half], allowed, float(found[which]), low),
        _crossing(values[half:], against[half:], allowed, float(found[which]), high),
    )


def _against(
    x: np.ndarray, y: np.ndarray, deviations: np.ndarray, law: np.ndarray, which: int, fixed: Sequence[int]
) -> float:
    """Student's t of what the runs say of a value."""
    own = _alone(x, law, which, fixed)
    said = own @ (y - RaisedPowerLaw(*law).logarithm(x))
    against = abs(said) / max(_scatter(deviations, own, len(deviations)), 1e-300)
    return float(against) if np.isfinite(against) else math.inf


def _scatter(deviations: np.ndarray, own: np.ndarray, runs: int) -> float:
    """Standard error of the mean over runs of what each says; of one run, by the scatter of its points."""
    if runs > 1:
        return float(np.std(deviations @ own, ddof=1)) / math.sqrt(runs)
    return float(np.linalg.norm(deviations) / math.sqrt(deviations.size) * np.linalg.norm(own))


def slopes_of(x: Float[np.ndarray, " points"], laws: Float[np.ndarray, "laws 3"]) -> Float[np.ndarray, "laws points 3"]:
    """Derivatives of ln L by level, exponent and floor."""
    level, exponent, floor = (laws[:, k, None] for k in range(3))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        inverse = np.exp(exponent * x - level)
        share = np.where(floor > 0, 1 / (1 + floor * inverse), 1.0)
        last = np.where(np.isfinite(inverse), inverse * share, 1 / floor)
    return np.stack([share, -share * x, last], axis=-1)


def _alone(x: np.ndarray, law: np.ndarray, which: int, fixed: Sequence[int]) -> np.ndarray:
    """The slope in one number, without what changes of the others make up for; a floor of zero does not change."""
    slopes = slopes_of(x, law[None])[0]
    others = slopes[:, [k for k in range(3) if k not in (which, *fixed) and not (k == FLOOR and law[k] == 0)]]
    sizes = np.linalg.norm(others, axis=0)
    others = others / np.where(sizes > 0, sizes, 1)
    mine = slopes[:, which]
    return mine - others @ np.linalg.lstsq(others, mine, rcond=None)[0]


def _crossing(values: np.ndarray, against: np.ndarray, allowed: float, found: float, bound: float) -> float:
    """Where more speaks against a value than is allowed, for the first time from the estimate on."""
    values, against = np.append(found, values), np.append(0.0, against)
    beyond = np.flatnonzero(against > allowed)
    if not len(beyond):
        return bound
    k = int(beyond[0])
    share = (allowed - against[k - 1]) / (against[k] - against[k - 1])
    return float(values[k - 1] + share * (values[k] - values[k - 1]))
