"""Calibration of the law of emergence in time (rate and offset) on runs with one skill."""

from __future__ import annotations

import math
import warnings
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
from annotated_types import Ge
from jaxtyping import Float, Real
from numpy.typing import ArrayLike
from scipy.special import expit, stdtrit

from dynascope.results.named_tuples import short_repr
from dynascope.theory.units import in_units
from dynascope.validation import require, require_increasing, require_shape
from dynascope.validation.bounded import FiniteNumbers, OpenFraction, PositiveFloat

__all__ = ["Amounts", "Calibration", "Strengths", "calibrate", "checked_curves"]

_ABOVE_ONE = 0.05  # tolerated excess of a measured strength over one
_DEVIATIONS = 5.0  # tolerated excess in standard deviations of the scatter between neighbouring points

Amounts: TypeAlias = Annotated[Real[ArrayLike, " values"], Ge(0)]
Strengths: TypeAlias = FiniteNumbers
_MOST_WINDOWS = 10  # updates of the window, whose points may alternate at its ends
_MOST_STEPS = 50
_ROUGH = 1e-3  # relative Newton step that is small enough to determine the points in the window
_ROUNDING = 1e-14
_RATE = "t^-1 h^-1 s^-1"  # units of a rate in those of steps, η and S


def checked_curves(
    name: str, amounts: ArrayLike, strength: ArrayLike
) -> tuple[Float[np.ndarray, " values"], Float[np.ndarray, "runs values"]]:
    """Validate amounts and R/S, and return them as arrays with one row per run."""
    amounts, runs = np.asarray(amounts), np.asarray(strength)
    require_increasing(name, amounts, fewest=2)
    require_shape("strength", runs, (len(amounts),) if runs.ndim <= 1 else (None, len(amounts)))
    runs = np.atleast_2d(runs)
    require(len(runs) > 0, "there are no runs", argument="strength", value=0, remedy="give at least one run")
    highest = float(runs.max())
    require(
        highest <= 1 + max(_ABOVE_ONE, _DEVIATIONS * _scatter_when_learned(runs)),
        f"the strength reaches {highest:.3g}, but a perfect network has strength one",
        argument="strength",
        value=highest,
        remedy="give R/S, the strength divided by that of a network that has learned the skill",
    )
    return amounts, runs


def _scatter_when_learned(runs: Float[np.ndarray, "runs values"]) -> float:
    """Standard deviation of individual values after the strength has saturated, from second differences."""
    # Second differences are insensitive to the slow end of the growth.
    bends = np.diff(runs, n=2, axis=1)[(runs[:, 2:] > 0.8) & (runs[:, 1:-1] > 0.8) & (runs[:, :-2] > 0.8)]
    return float(np.sqrt(np.mean(bends**2) / 6)) if len(bends) >= 5 else 0.0


class Calibration(NamedTuple):
    """Time law of a network, calibrated on one skill, for `time_emergence`.

    For several runs, errors and intervals refer to the mean over all possible runs. For a single run, they refer to the
    curve of this run and do not include the scatter between seeds.

    Attributes:
        rate: Rate r in the law R/S = 1/(1 + exp(ln c − 2 η S r T)) for the strength R of the skill after T steps.
        rate_error: Standard error of the rate.
        rate_interval: Confidence interval of the rate; its lower end is zero if arbitrarily small rates are possible.
        offset: Offset ln c = ln(S/R(0) − 1).
        offset_error: Standard error of the offset.
        offset_interval: Confidence interval of the offset.
        half_step: Step at which the calibrated skill has half its strength; skill k reaches half its strength at
            half_step/P(k).
        half_step_error: Standard error of the half step, in which the errors of rate and offset largely cancel.
        half_step_interval: Confidence interval of the half step; its upper end is infinite if the rate may be zero.
        initial_strength: R(0)/S = 1/(1 + c), the initial value of the fitted curve.
        runs: Number of runs.
    """

    rate: float
    rate_error: float
    rate_interval: tuple[float, float]
    offset: float
    offset_error: float
    offset_interval: tuple[float, float]
    half_step: float
    half_step_error: float
    half_step_interval: tuple[float, float]
    initial_strength: float
    runs: int

    __repr__ = short_repr


@in_units(
    "steps",
    "learning_rate",
    "target_scale",
    steps="t",
    learning_rate="h",
    target_scale="s",
    gives={
        **{"rate": _RATE, "rate_error": _RATE, "rate_interval": _RATE},
        **{"half_step": "t", "half_step_error": "t", "half_step_interval": "t"},
    },
    infinite=True,
)
def calibrate(
    steps: Amounts,
    strength: Strengths,
    *,
    learning_rate: PositiveFloat = 1.0,
    target_scale: PositiveFloat = 1.0,
    window: tuple[OpenFraction, OpenFraction] = (0.05, 0.6),
    confidence: OpenFraction = 0.95,
) -> Calibration:
    """Fit the rate and offset of the time law to the strength of one skill that is trained alone.

        R/S = 1/(1 + exp(ln c − 2 η S r T))

    For each run, the logistic is fitted to the points whose fitted value lies in the window, by the equations Σ
    (R/S − fit) = 0 and Σ T (R/S − fit) = 0. Noise in the strength does not bias this fit. The window ends slightly
    above half strength because networks saturate more slowly than the logistic.

    For several runs, rates and offsets are averaged, and the intervals are Student's t intervals over runs. For a
    single run of n points, the standard errors are HC3 errors, from squared residuals divided by (1 − leverage)², and
    the intervals use Student's t with n − 2 degrees of freedom. The points must scatter independently, with any
    variance. The intervals have their stated coverage for at least two runs, or for a single run with at least about
    five points in the window, but are wide for so few runs or points.

    You may omit η and S both here and in the prediction: the rate is then in units of 2 η S, and the predicted steps
    are the same. With η and S, rates can be compared between runs.

    Args:
        steps: T ≥ 0, increasing, shape (steps,).
        strength: R/S at these steps, shape (steps,) or (runs, steps); at most one, up to noise.
        learning_rate: Learning rate η > 0 of the runs.
        target_scale: Target strength S > 0 in the runs.
        window: Smallest and largest R/S to fit, between 0 and 1.
        confidence: Confidence level of the intervals, between 0 and 1.

    Raises:
        InputError: If a run has fewer than three points in the window; if the strength does not grow in the window,
            starts above one half or exceeds one; or if a number is out of range.

    Warns:
        UserWarning: If the runs are too few, or differ too much, to bound the rate from below.

    References:
        Nam, DPhil thesis (2024), section 5.2; Nam et al., arXiv:2404.17563, where the rate is 1/22. MacKinnon & White,
        J. Econometrics 29, 305 (1985), for HC3; Fieller, J. R. Stat. Soc. B 16, 175 (1954), for the interval of the
        half step, a ratio.

    Example:
        >>> steps = np.arange(0, 1000, 50)
        >>> strength = 1 / (1 + np.exp(7 - 2 * 0.05 * 5 * 0.04 * steps))
        >>> fitted = calibrate(steps, strength, learning_rate=0.05, target_scale=5.0)
        >>> round(fitted.rate, 12), round(fitted.offset, 12), round(fitted.half_step, 9)
        (0.04, 7.0, 350.0)
    """
    low, high = window
    require(
        low < high,
        f"window is {window}",
        argument="window",
        value=window,
        remedy="give the smaller fraction first",
    )
    steps, runs = checked_curves("steps", steps, strength)
    fits = [_logistic(steps, run, low, high) for run in runs]
    slope, offset = mean = np.mean([fit[0] for fit in fits], axis=0)
    covariance, freedom = fits[0][1:]
    if len(runs) > 1:
        covariance, freedom = np.cov(np.transpose([fit[0] for fit in fits])) / len(runs), len(runs) - 1
    allowed, unit = float(stdtrit(freedom, (1 + confidence) / 2)), 2 * learning_rate * target_scale
    half = offset / slope
    errors = np.sqrt(np.diag(covariance))
    lows, highs = mean - allowed * errors, mean + allowed * errors
    if lows[0] <= 0:
        several = f"{len(runs)} runs" if len(runs) > 1 else "the points of one run"
        warnings.warn(
            f"{several} do not determine the rate, which may be anywhere from zero to {highs[0] / unit:.3g}; "
            f"{'give more runs' if len(runs) > 1 else 'record more often'}",
            stacklevel=2,
        )
    ratio = np.array([-half, 1.0])  # gradient of the half step with respect to slope and offset, times the slope
    return Calibration(
        rate=float(slope / unit),
        rate_error=float(errors[0] / unit),
        rate_interval=(max(float(lows[0] / unit), 0.0), float(highs[0] / unit)),
        offset=float(offset),
        offset_error=float(errors[1]),
        offset_interval=(float(lows[1]), float(highs[1])),
        half_step=float(half),
        half_step_error=math.sqrt(max(float(ratio @ covariance @ ratio), 0.0)) / float(slope),
        half_step_interval=_ratio_interval(mean, covariance, allowed),
        initial_strength=float(1 / (1 + np.exp(offset))),
        runs=len(runs),
    )


def _logistic(
    steps: np.ndarray, strength: np.ndarray, low: float, high: float
) -> tuple[Float[np.ndarray, " 2"], Float[np.ndarray, "2 2"], int]:
    """Fit the slope and offset of one run; return both estimates, their covariance and the degrees of freedom."""
    inside = (strength > low) & (strength < high)
    _require_points(inside)
    logit = np.log(strength[inside]) - np.log1p(-strength[inside])
    found = _line(steps[inside], logit, strength[inside] * (1 - strength[inside]))
    # Selecting points by their noisy values would bias the fit, so the window is applied to the fitted values.
    for _ in range(_MOST_WINDOWS):
        fitted = expit(found[0] * steps - found[1])
        before, inside = inside, (fitted > low) & (fitted < high)
        _require_points(inside)
        if np.array_equal(before, inside):
            break
        found = _newton(steps[inside], strength[inside], found, _ROUGH)
    found = _newton(steps[inside], strength[inside], found)
    t, r = steps[inside], strength[inside]
    fitted = expit(found[0] * t - found[1])
    slopes = np.stack([t, -np.ones_like(t)], axis=1)
    inverse = np.linalg.pinv((slopes * (fitted * (1 - fitted))[:, None]).T @ slopes)
    leverage = np.sum((slopes @ inverse) * slopes, axis=1) * fitted * (1 - fitted)
    left = slopes * ((r - fitted) / np.maximum(1 - leverage, _ROUNDING))[:, None]
    return found, inverse @ (left.T @ left) @ inverse, len(t) - 2


def _line(t: np.ndarray, logit: np.ndarray, weights: np.ndarray) -> Float[np.ndarray, " 2"]:
    centre = np.average(t, weights=weights)
    slope = weights @ ((t - centre) * logit) / (weights @ (t - centre) ** 2)
    return _require_growth(np.array([slope, slope * centre - np.average(logit, weights=weights)]))


def _newton(t: np.ndarray, r: np.ndarray, start: np.ndarray, precision: float = _ROUNDING) -> Float[np.ndarray, " 2"]:
    """Maximise the concave function Σ r η − ln(1 + e^η), with η = slope · t − offset, by damped Newton steps."""
    centre = t.mean()
    z, now = t - centre, np.array([start[0], start[1] - start[0] * centre])

    def height(numbers: np.ndarray) -> float:
        logit = numbers[0] * z - numbers[1]
        return float(np.sum(r * logit - np.logaddexp(0, logit)))

    slopes = np.stack([z, -np.ones_like(z)], axis=1)
    for _ in range(_MOST_STEPS):
        fitted = expit(now[0] * z - now[1])
        curvature = (slopes * (fitted * (1 - fitted))[:, None]).T @ slopes
        step = np.linalg.solve(curvature, slopes.T @ (r - fitted))
        reached = height(now)
        while height(now + step) < reached - 1e-12 * abs(reached):
            step /= 2
        now = now + step
        if np.all(np.abs(step) <= precision * np.abs(now)):
            break
    return _require_growth(np.array([now[0], now[1] + now[0] * centre]))


def _ratio_interval(mean: np.ndarray, covariance: np.ndarray, allowed: float) -> tuple[float, float]:
    """Return Fieller's interval of offset/slope: all ratios h for which offset − h · slope is compatible with zero."""
    (slopes, both), (_, offsets) = covariance * allowed**2
    slope, offset = mean
    squared, mixed, free = slope**2 - slopes, slope * offset - both, offset**2 - offsets
    root = math.sqrt(max(float(mixed**2 - squared * free), 0.0))
    lower = free / (mixed + root) if free > 0 else 0.0
    return max(float(lower), 0.0), float((mixed + root) / squared) if squared > 0 else math.inf


def _require_points(inside: np.ndarray) -> None:
    require(
        inside.sum() >= 3,
        f"the window contains too few steps of a run ({inside.sum()})",
        argument="strength",
        value=int(inside.sum()),
        remedy="record the strength more often, or train until the skill is learned",
    )


def _require_growth(found: np.ndarray) -> np.ndarray:
    slope, offset = found
    require(
        slope > 0 and offset > 0,
        "the strength does not start below one half" if slope > 0 else "the strength does not grow in the window",
        argument="strength",
        value=float(slope if slope <= 0 else -offset),
        remedy="give R/S of a skill that is learned from a small initialisation",
    )
    return found
