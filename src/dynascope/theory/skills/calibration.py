"""Calibrate the law of emergence in time on runs with one skill: its rate and its offset."""

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

_ABOVE_ONE = 0.05  # by which any strength may exceed that of a perfect network, as measured ones do
_DEVIATIONS = 5.0  # and by how many of the scatter between neighbours

Amounts: TypeAlias = Annotated[Real[ArrayLike, " values"], Ge(0)]
Strengths: TypeAlias = FiniteNumbers
_MOST_WINDOWS = 10  # until the points in the window stay the same, or take turns at its ends
_MOST_STEPS = 50
_ROUGH = 1e-3  # step of Newton's, as a share, that tells which points are in the window
_ROUNDING = 1e-14
_RATE = "t^-1 h^-1 s^-1"  # units of a rate in those of steps, η and S


def checked_curves(
    name: str, amounts: ArrayLike, strength: ArrayLike
) -> tuple[Float[np.ndarray, " values"], Float[np.ndarray, "runs values"]]:
    """Amounts and R/S of every run, after checking that they fit together."""
    amounts, runs = np.asarray(amounts), np.asarray(strength)
    require_increasing(name, amounts, fewest=2)
    require_shape("strength", runs, (len(amounts),) if runs.ndim <= 1 else (None, len(amounts)))
    runs = np.atleast_2d(runs)
    require(len(runs) > 0, "there are no runs", argument="strength", value=0, remedy="give at least one")
    highest = float(runs.max())
    require(
        highest <= 1 + max(_ABOVE_ONE, _DEVIATIONS * _scatter_when_learned(runs)),
        f"the strength reaches {highest:.3g}, and that of a perfect network is one",
        argument="strength",
        value=highest,
        remedy="give R/S: divide by the strength S of a network that has learned the skill",
    )
    return amounts, runs


def _scatter_when_learned(runs: Float[np.ndarray, "runs values"]) -> float:
    """Standard deviation of single values where the strength has stopped growing, by its bends."""
    # Second differences do not see the slow end of the growth.
    bends = np.diff(runs, n=2, axis=1)[(runs[:, 2:] > 0.8) & (runs[:, 1:-1] > 0.8) & (runs[:, :-2] > 0.8)]
    return float(np.sqrt(np.mean(bends**2) / 6)) if len(bends) >= 5 else 0.0


class Calibration(NamedTuple):
    """The time law of a network, as `time_emergence` takes it.

    Of several runs errors and intervals say how far their mean may be from that of all runs; of one they are those of
    its curve, and do not know how much another seed would differ.

    Attributes:
        rate: r.
        rate_error: Its standard error.
        rate_interval: Its confidence interval, from zero on where no slowness is contradicted.
        offset: ln c = ln(S/R(0) − 1).
        offset_error: Its standard error.
        offset_interval: Its confidence interval.
        half_step: Step at which the one skill has half its strength; skill k has it at half_step/P(k).
        half_step_error: Its standard error, in which those of rate and offset largely cancel.
        half_step_interval: Its confidence interval, up to infinity where the rate may be zero.
        initial_strength: R(0)/S = 1/(1 + c), where the fitted curve starts.
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
    """Rate and offset of the time law, from the strength of one skill that is trained alone.

    The logistic R/S = 1/(1 + exp(ln c − 2 η S r T)), fitted to each run where its own value is in the window by the
    equations Σ (R/S − fit) = 0 and Σ T (R/S − fit) = 0, which noise in the strength does not bias. Networks saturate
    more slowly than the logistic, so the window ends a little above half strength.

    Of several runs rates and offsets are averaged, with Student's interval over runs. Of one run, whose points are
    taken to scatter independently, whatever their size, the errors are those of the squares of what is left at each
    point, over 1 − leverage (HC3), with Student's interval for two numbers less than points. Both cover what they
    state, from two runs and from about five points in the window on; intervals from few are wide.

    Whoever gives neither η nor S, here and in the forecast, has a rate in units of 2 η S and the same steps; with them
    the rate is comparable between runs.

    Args:
        steps: T ≥ 0, increasing, shape (steps,).
        strength: R/S at these steps, shape (steps,) or (runs, steps); at most one, but for noise.
        learning_rate: η > 0 of the runs.
        target_scale: S > 0 of the runs.
        window: The values of R/S between which to fit.
        confidence: Of the intervals, between 0 and 1.

    Raises:
        InputError: Fewer than three points of a run in the window, a strength that does not grow there, starts half
            learned or exceeds one, or numbers out of range.

    Warns:
        UserWarning: Runs so few, or so different, that the rate may be any slower one.

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
            f"{several} do not tell the rate: it may be anything up to {highs[0] / unit:.3g}; "
            f"{'give more runs' if len(runs) > 1 else 'record more often'}",
            stacklevel=2,
        )
    ratio = np.array([-half, 1.0])  # the half step changes as offset − half step · slope, over the slope
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
    """Slope and offset of a run, their covariance and its degrees of freedom."""
    inside = (strength > low) & (strength < high)
    _require_points(inside)
    logit = np.log(strength[inside]) - np.log1p(-strength[inside])
    found = _line(steps[inside], logit, strength[inside] * (1 - strength[inside]))
    # Noise carries points into a window of values and out of it, which biases; that of the fitted values stays.
    for _ in range(_MOST_WINDOWS):
        fitted = expit(found[0] * steps - found[1])
        before, inside = inside, (fitted > low) & (fitted < high)
        _require_points(inside)
        if np.array_equal(before, inside):
            break
        found = _solved(steps[inside], strength[inside], found, _ROUGH)
    found = _solved(steps[inside], strength[inside], found)
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
    return _growing(np.array([slope, slope * centre - np.average(logit, weights=weights)]))


def _solved(t: np.ndarray, r: np.ndarray, start: np.ndarray, precision: float = _ROUNDING) -> Float[np.ndarray, " 2"]:
    """Newton's steps to the maximum of Σ r η − ln(1 + e^η), which is concave, halved where they go too far."""
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
    return _growing(np.array([now[0], now[1] + now[0] * centre]))


def _ratio_interval(mean: np.ndarray, covariance: np.ndarray, allowed: float) -> tuple[float, float]:
    """Fieller's interval of offset/slope: the ratios h for which offset − h · slope may be zero."""
    (slopes, both), (_, offsets) = covariance * allowed**2
    slope, offset = mean
    squared, mixed, free = slope**2 - slopes, slope * offset - both, offset**2 - offsets
    root = math.sqrt(max(float(mixed**2 - squared * free), 0.0))
    lower = free / (mixed + root) if free > 0 else 0.0
    return max(float(lower), 0.0), float((mixed + root) / squared) if squared > 0 else math.inf


def _require_points(inside: np.ndarray) -> None:
    require(
        inside.sum() >= 3,
        f"{inside.sum()} steps of a run are in the window",
        argument="strength",
        value=int(inside.sum()),
        remedy="record more often, or train until the skill is learned",
    )


def _growing(found: np.ndarray) -> np.ndarray:
    slope, offset = found
    require(
        slope > 0 and offset > 0,
        "the strength does not grow from below one half" if slope > 0 else "the strength does not grow in the window",
        argument="strength",
        value=float(slope if slope <= 0 else -offset),
        remedy="give R/S of a skill that is learned from a small initialisation",
    )
    return found
