"""How many samples and neurons a network needs for a skill, from runs on that skill alone."""

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
    """How much a network needs to learn a skill, as `data_emergence` and `parameter_emergence` take it.

    Attributes:
        needed: D_c or N_c.
        error: Its standard error: what the distance between the recorded values leaves open, width/√12 of the interval
            in which half strength is passed, and the error of the mean over runs. Of neurons, which are whole, the
            width is less by one: between neighbours there is nothing to record.
        interval: Confidence interval of `needed`. Of one run it is the recorded values between which half strength is
            passed, in the same units, and does not know how much another run would differ; of several Student's.
        half: The number of samples or neurons with which the one skill has half its strength.
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
    """D_c, the samples that a network needs for a skill, from runs on one skill.

    Where half strength is passed, D_c = 2 D_½ in correlation and 4/3 D_½ in loss.

    Args:
        samples: D ≥ 0 of each run, increasing, shape (sizes,).
        strength: R/S after training, shape (sizes,) or (runs, sizes), measured by the same definition: as E[g f]/S, or
            as 1 − √(2 L)/S.
        definition: "correlation" or "loss_equivalent".
        confidence: Of the interval of several runs, between 0 and 1.

    Raises:
        InputError: A strength that does not pass ½, or numbers out of range.

    References:
        Nam, DPhil thesis (2024), 5.5, where D_c = 800 in loss.

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
    """N_c, the neurons that a network needs for a skill, from runs on one skill.

    Where half strength is passed, N_c = 2 N_½ in correlation and 4/3 N_½ in loss.

    Args:
        neurons: N ≥ 0 of each run, increasing, shape (widths,).
        strength: R/S after training, as E[g f]/S or as 1 − √(2 L)/S, shape (widths,) or (runs, widths).
        definition: "correlation" or "loss_equivalent".
        confidence: Of the interval of several runs, between 0 and 1.

    Raises:
        InputError: A strength that does not pass ½, or numbers out of range.

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
    """`nearest` is the distance of neighbours between which there is nothing."""
    amounts, runs = checked_curves(name, amounts, strength)
    half = float(to_fraction(0.5, definition))
    # The learned fraction is linear in the amount, as the strength is not, so that interpolation is exact.
    fractions = to_fraction(np.minimum(runs, 1.0), definition)
    crossings = np.array([_crossing(amounts, run, half) for run in fractions])
    halves, lows, highs = crossings.T / half
    needed, open_ = float(halves.mean()), np.maximum(highs - lows - nearest / half, 0.0)
    resolution = float(open_.mean()) / math.sqrt(12)
    interval, spread = (float(lows[0]), float(highs[0])), 0.0
    if len(runs) > 1:
        spread = float(halves.std(ddof=1)) / math.sqrt(len(runs))
        # What the distance of the recorded values leaves open does not average out: all runs were recorded alike.
        width = math.hypot(resolution, spread) * float(stdtrit(len(runs) - 1, (1 + confidence) / 2))
        interval = (max(needed - width, 0.0), needed + width)
    return Need(needed, math.hypot(resolution, spread), interval, needed * half, len(runs))


def _crossing(amounts: np.ndarray, fraction: np.ndarray, level: float) -> tuple[float, float, float]:
    """Where the fraction first reaches the level, interpolated linearly, and the values on both sides."""
    reached = int(np.argmax(fraction >= level))
    if fraction[reached] < level or reached == 0:
        raise InputError(
            "the strength does not pass one half",
            argument="strength",
            value=float(fraction[reached]),
            remedy="extend the runs on both sides of half strength",
        )
    share = (level - fraction[reached - 1]) / (fraction[reached] - fraction[reached - 1])
    before, after = float(amounts[reached - 1]), float(amounts[reached])
    return before + share * (after - before), before, after
