"""Calibrate the laws of emergence on runs with one skill: how fast, from how many samples, with how many neurons."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.arguments import count_axes, require, require_array, require_positive
from dynascope.errors import InputError
from dynascope.theory.skills.training_set import Definition, to_fraction

__all__ = ["Calibration", "Need", "calibrate", "calibrate_data", "calibrate_parameters"]


class Calibration(NamedTuple):
    """The time law of a network, as `time_emergence` takes it.

    Attributes:
        rate: r.
        rate_error: Its standard error.
        offset: ln c = ln(S/R(0) − 1).
        offset_error: Its standard error.
        half_step: Step at which the one skill has half its strength; skill k has it at half_step/P(k).
        half_step_error: Its standard error, in which those of rate and offset largely cancel.
        initial_strength: R(0)/S = 1/(1 + c), where the fitted curve starts.
        runs: Number of runs. Of several the errors are those of their mean; of one, those of the straight line, which
            do not know how much another seed would differ.
    """

    rate: float
    rate_error: float
    offset: float
    offset_error: float
    half_step: float
    half_step_error: float
    initial_strength: float
    runs: int


class Need(NamedTuple):
    """How much a network needs to learn a skill, as `data_emergence` and `parameter_emergence` take it.

    Attributes:
        needed: D_c or N_c.
        error: Its standard error: what the distance between the recorded values leaves open, width/√12 of the interval
            in which half strength is passed, and the error of the mean over runs.
        half: The number of samples or neurons with which the one skill has half its strength.
        runs: Number of runs.
    """

    needed: float
    error: float
    half: float
    runs: int


def calibrate(
    steps: ArrayLike,
    strength: ArrayLike,
    *,
    learning_rate: float = 1.0,
    target_scale: float = 1.0,
    window: tuple[float, float] = (0.05, 0.6),
) -> Calibration:
    """Rate and offset of the time law, from the strength of one skill that is trained alone.

    A straight line logit(R/S) = 2 η S r T − ln c, fitted with the weights R/S (1 − R/S) where R/S is in the window.
    Networks saturate more slowly than the logistic, so the window ends a little above half strength.

    Whoever gives neither η nor S, here and in the forecast, has a rate in units of 2 η S and the same steps; with them
    the rate is comparable between runs.

    Args:
        steps: T, increasing, shape (steps,).
        strength: R/S at these steps, shape (steps,) or (runs, steps).
        learning_rate: η of the runs.
        target_scale: S of the runs.
        window: The values of R/S between which to fit.

    Raises:
        InputError: Fewer than three points of a run in the window, a strength that does not grow there or starts half
            learned, or numbers out of range.

    References:
        Nam, DPhil thesis (2024), section 5.2; Nam et al., arXiv:2404.17563, where the rate is 1/22.

    Example:
        >>> steps = np.arange(0, 1000, 50)
        >>> strength = 1 / (1 + np.exp(7 - 2 * 0.05 * 5 * 0.04 * steps))
        >>> fitted = calibrate(steps, strength, learning_rate=0.05, target_scale=5.0)
        >>> round(fitted.rate, 12), round(fitted.offset, 12), round(fitted.half_step, 9)
        (0.04, 7.0, 350.0)
    """
    require_positive(learning_rate=learning_rate, target_scale=target_scale)
    low, high = require_array("window", window, (2,))
    require(
        0 < low < high < 1,
        f"window is {window}",
        argument="window",
        value=window,
        remedy="choose two fractions between zero and one, in order",
    )
    steps, runs = _checked_curves("steps", steps, strength)
    fits = [_line(steps, run, low, high) for run in runs]
    # Of each run: slope, intercept, half step; then the errors of the lines, in the same order.
    values, errors = np.array([fit[0] for fit in fits]), np.array([fit[1] for fit in fits])
    spread = values.std(axis=0, ddof=1) / math.sqrt(len(runs)) if len(runs) > 1 else errors[0]
    slope, offset = values.mean(axis=0)[:2]
    unit = 2 * learning_rate * target_scale
    return Calibration(
        rate=float(slope / unit),
        rate_error=float(spread[0] / unit),
        offset=float(offset),
        offset_error=float(spread[1]),
        half_step=float(offset / slope),
        half_step_error=float(spread[2]),
        initial_strength=float(1 / (1 + np.exp(offset))),
        runs=len(runs),
    )


def calibrate_data(
    samples: ArrayLike,
    strength: ArrayLike,
    *,
    definition: Definition = "correlation",
) -> Need:
    """D_c, the samples that a network needs for a skill, from runs on one skill.

    Where half strength is passed, D_c = 2 D_½ in correlation and 4/3 D_½ in loss.

    Args:
        samples: D of each run, increasing, shape (sizes,).
        strength: R/S after training, shape (sizes,) or (runs, sizes), measured by the same definition: as E[g f]/S, or
            as 1 − √(2 L)/S.
        definition: "correlation" or "loss_equivalent".

    Raises:
        InputError: A strength that does not pass ½, or numbers out of range.

    References:
        Nam, DPhil thesis (2024), 5.5, where D_c = 800 in loss.

    Example:
        >>> calibrate_data([100, 300, 500, 700], [0.1, 0.3, 0.55, 0.9]).needed
        920.0
    """
    return _calibrate_need("samples", samples, strength, definition)


def calibrate_parameters(
    neurons: ArrayLike,
    strength: ArrayLike,
    *,
    definition: Definition = "correlation",
) -> Need:
    """N_c, the neurons that a network needs for a skill, from runs on one skill.

    Args:
        neurons: N of each run, increasing, shape (widths,).
        strength: R/S after training, shape (widths,) or (runs, widths).
        definition: "correlation" or "loss_equivalent".

    Raises:
        InputError: A strength that does not pass ½, or numbers out of range.

    References:
        Nam, DPhil thesis (2024), 5.9, where N_c = 4.

    Example:
        >>> calibrate_parameters([1, 2, 3, 4], [0.25, 0.5, 0.75, 1.0]).needed
        4.0
    """
    return _calibrate_need("neurons", neurons, strength, definition)


def _line(steps: np.ndarray, strength: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Slope, offset and half step of logit(R/S) over the steps, and their standard errors."""
    inside = (strength > low) & (strength < high)
    require(
        inside.sum() >= 3,
        f"{inside.sum()} values of the strength are between {low:g} and {high:g}",
        argument="strength",
        value=int(inside.sum()),
        remedy="record more often, or train until the skill is learned",
    )
    t, r = steps[inside], strength[inside]
    weights = r * (1 - r)
    logit = np.log(r) - np.log1p(-r)
    centre, level = np.average(t, weights=weights), np.average(logit, weights=weights)
    variation = weights @ (t - centre) ** 2
    slope = weights @ ((t - centre) * logit) / variation
    offset = slope * centre - level
    require(
        slope > 0 and offset > 0,
        "the strength does not grow from below one half" if slope > 0 else "the strength does not grow in the window",
        argument="strength",
        value=float(slope if slope <= 0 else -offset),
        remedy="give R/S of a skill that is learned from a small start",
    )
    noise = weights @ (logit - slope * t + offset) ** 2 / (len(t) - 2)
    half = offset / slope
    # The error of the line at the step T is √(noise (1/Σw + (T − centre)²/variation)).
    distances = np.array([0.0, half]) - centre
    at_start, at_half = np.sqrt(noise * (1 / weights.sum() + distances**2 / variation))
    return np.array([slope, offset, half]), np.array([math.sqrt(noise / variation), at_start, at_half / slope])


def _calibrate_need(name: str, amounts: ArrayLike, strength: ArrayLike, definition: Definition) -> Need:
    amounts, runs = _checked_curves(name, amounts, strength)
    half = float(to_fraction(0.5, definition))
    # The learned fraction is linear in the amount, as the strength is not, so that interpolation is exact.
    fractions = to_fraction(np.minimum(runs, 1.0), definition)
    crossings = np.array([_crossing(amounts, run, half) for run in fractions])
    halves, widths = crossings.T / half
    spread = halves.std(ddof=1) / math.sqrt(len(runs)) if len(runs) > 1 else 0.0
    error = math.hypot(widths.mean() / math.sqrt(12), spread)
    return Need(float(halves.mean()), error, float(halves.mean() * half), len(runs))


def _crossing(amounts: np.ndarray, fraction: np.ndarray, level: float) -> tuple[float, float]:
    """Where the fraction first reaches the level, interpolated linearly, and the width of that interval."""
    reached = int(np.argmax(fraction >= level))
    if fraction[reached] < level or reached == 0:
        raise InputError(
            "the strength does not pass one half",
            argument="strength",
            value=float(fraction[reached]),
            remedy="extend the runs on both sides of half strength",
        )
    width = amounts[reached] - amounts[reached - 1]
    share = (level - fraction[reached - 1]) / (fraction[reached] - fraction[reached - 1])
    return float(amounts[reached - 1] + share * width), float(width)


def _checked_curves(
    name: str, amounts: ArrayLike, strength: ArrayLike
) -> tuple[Float[np.ndarray, " values"], Float[np.ndarray, "runs values"]]:
    amounts = require_array(name, amounts, (None,))
    require(
        bool(len(amounts) >= 2 and amounts[0] >= 0 and np.all(np.diff(amounts) > 0)),
        f"{name} does not increase from zero or above",
        argument=name,
        value=amounts.tolist(),
        remedy="give at least two numbers in increasing order, none negative",
    )
    shape = (len(amounts),) if count_axes(strength) <= 1 else (None, len(amounts))
    runs = np.atleast_2d(require_array("strength", strength, shape))
    require(len(runs) > 0, "there are no runs", argument="strength", value=0, remedy="give at least one")
    return amounts, runs
