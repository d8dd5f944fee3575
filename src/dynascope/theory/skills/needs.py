"""Calibration of the samples and neurons that a network needs for a skill, from runs on that skill alone."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from dynascope.errors import InputError
from dynascope.results.named_tuples import short_repr
from dynascope.theory.skills.calibration import Amounts, Strengths, checked_curves
from dynascope.theory.skills.training_set import Definition, to_fraction
from dynascope.validation import checked
from dynascope.validation.bounded import OpenFraction

__all__ = ["Need", "calibrate_data", "calibrate_parameters"]


class Need(NamedTuple):
    """Number of samples or neurons that a network needs for a skill, for `data_emergence` and `parameter_emergence`.

    Attributes:
        needed: Number of samples D_c, or of neurons N_c.
        error: Standard error of `needed`. It combines the standard error of the mean over runs with the resolution of
            the recorded values. The resolution is width/√12, where width is the length of the recording interval in
            which the strength crosses one half. For neurons, the width is reduced by one, because their number is an
            integer.
        interval: Confidence interval of `needed`. For several runs, it is a Student's t interval. For a single run, it
            is the range between the recorded values on either side of half strength, in the units of `needed`; it does
            not include the scatter between runs.
        half: Number of samples or neurons at which the skill has half its strength.
        runs: Number of runs.
    """

    needed: float
    error: float
    interval: tuple[float, float]
    half: float
    runs: int

    __repr__ = short_repr


@checked
def calibrate_data(
    samples: Amounts,
    strength: Strengths,
    *,
    definition: Definition = "correlation",
    confidence: OpenFraction = 0.95,
) -> Need:
    """Estimate the number of samples D_c that a network needs for a skill, from runs on one skill.

    If the strength reaches one half at D_½ samples, D_c = 2 D_½ for "correlation" and 4/3 D_½ for "loss_equivalent".

    Args:
        samples: Number of samples D ≥ 0, increasing, shape (sizes,).
        strength: R/S after training, shape (sizes,) or (runs, sizes): E[g f]/S for "correlation", 1 − √(2 L)/S for
            "loss_equivalent".
        definition: "correlation" or "loss_equivalent".
        confidence: Confidence level of the interval for several runs, between 0 and 1.

    Raises:
        InputError: If the strength does not cross ½, or a number is out of range.

    References:
        Nam, DPhil thesis (2024), equation 5.5, where D_c = 800 for the loss-equivalent strength.

    Example:
        >>> calibrate_data([100, 300, 500, 700], [0.1, 0.3, 0.55, 0.9]).needed
        920.0
    """
    return _calibrate_need("samples", samples, strength, definition, confidence)


@checked
def calibrate_parameters(
    neurons: Amounts,
    strength: Strengths,
    *,
    definition: Definition = "correlation",
    confidence: OpenFraction = 0.95,
) -> Need:
    """Estimate the number of neurons N_c that a network needs for a skill, from runs on one skill.

    If the strength reaches one half at N_½ neurons, N_c = 2 N_½ for "correlation" and 4/3 N_½ for "loss_equivalent".

    Args:
        neurons: Number of neurons N ≥ 0, increasing, shape (widths,).
        strength: R/S after training, shape (widths,) or (runs, widths): E[g f]/S for "correlation", 1 − √(2 L)/S for
            "loss_equivalent".
        definition: "correlation" or "loss_equivalent".
        confidence: Confidence level of the interval for several runs, between 0 and 1.

    Raises:
        InputError: If the strength does not cross ½, or a number is out of range.

    References:
        Nam, DPhil thesis (2024), 5.9, where N_c = 4.

    Example:
        >>> calibrate_parameters([1, 2, 3, 4], [0.25, 0.5, 0.75, 1.0]).needed
        4.0
    """
    return _calibrate_need("neurons", neurons, strength, definition, confidence, nearest=1.0)


def _calibrate_need(
    name: str,
    amounts: ArrayLike,
    strength: ArrayLike,
    definition: Definition,
    confidence: float,
    nearest: float = 0.0,
) -> Need:
    """Estimate the samples or neurons needed; `nearest` is the smallest gap between two amounts (one for integers)."""
    amounts, runs = checked_curves(name, amounts, strength)
    half = float(to_fraction(0.5, definition))
    # The learned fraction is linear in the amount, unlike the strength, so interpolation is exact.
    fractions = to_fraction(np.minimum(runs, 1.0), definition)
    crossings = np.array([_crossing(amounts, run, half) for run in fractions])
    halves, lows, highs = crossings.T / half
    needed, open_ = float(halves.mean()), np.maximum(highs - lows - nearest / half, 0.0)
    resolution = float(open_.mean()) / math.sqrt(12)
    interval, spread = (float(lows[0]), float(highs[0])), 0.0
    if len(runs) > 1:
        spread = float(halves.std(ddof=1)) / math.sqrt(len(runs))
        # The resolution does not average out over runs, because all runs are recorded at the same values.
        width = math.hypot(resolution, spread) * float(stdtrit(len(runs) - 1, (1 + confidence) / 2))
        interval = (max(needed - width, 0.0), needed + width)
    return Need(needed, math.hypot(resolution, spread), interval, needed * half, len(runs))


def _crossing(amounts: np.ndarray, fraction: np.ndarray, level: float) -> tuple[float, float, float]:
    """Interpolate the first amount at which the fraction reaches the level; return it with its recorded neighbours."""
    reached = int(np.argmax(fraction >= level))
    if fraction[reached] < level or reached == 0:
        raise InputError(
            "the strength does not cross one half",
            argument="strength",
            value=float(fraction[reached]),
            remedy="record values on both sides of half strength",
        )
    share = (level - fraction[reached - 1]) / (fraction[reached] - fraction[reached - 1])
    before, after = float(amounts[reached - 1]), float(amounts[reached])
    return before + share * (after - before), before, after
