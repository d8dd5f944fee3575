"""Confidence intervals for a mean or a median of few runs."""

from __future__ import annotations

import functools
import math

import numpy as np
import scipy

from dynascope.validation import checked
from dynascope.validation.bounded_scalars import OpenFraction

__all__ = ["fewest_for_median", "median_interval", "student_half"]


@checked
def student_half(variance: float, runs: int, confidence: OpenFraction = 0.95) -> float:
    """Return the half-width of the Student interval for the mean of normally distributed runs.

    Args:
        variance: Sample variance of the runs (with n − 1).
        runs: The number of runs n, at least two.
        confidence: The confidence level, above 0 and below 1.

    Raises:
        InputError: A confidence outside (0, 1).

    Example:
        >>> round(student_half(1.0, 4), 2)  # two standard errors of 0.5 each would be 1
        1.59
    """
    return float(scipy.special.stdtrit(runs - 1, (1 + confidence) / 2)) * math.sqrt(variance / runs)


@checked
def median_interval(runs: np.ndarray, confidence: OpenFraction = 0.95) -> tuple[float, float]:
    """Return the narrowest interval of order statistics x₍ₖ₎, x₍ₙ₊₁₋ₖ₎ that covers the median with this confidence.

    The interval is valid for any distribution, as P(x₍ₖ₎ ≤ median ≤ x₍ₙ₊₁₋ₖ₎) ≥ 1 − 2 P(Binomial(n, ½) < k). Censored
    values can be infinite, for example ∞ for a step that was never reached.

    Args:
        runs: One value per run, shape (n,); some may be infinite.
        confidence: The confidence level, above 0 and below 1.

    Returns:
        Both ends; infinite if there are too few runs (fewer than six for 95 %).

    Raises:
        InputError: A confidence outside (0, 1).

    Example:
        >>> median_interval(np.array([3.0, 1.0, 2.0, np.inf, 4.0, 5.0]))
        (1.0, inf)
        >>> median_interval(np.arange(5.0))
        (-inf, inf)
    """
    ordered = [-math.inf, *sorted(runs.tolist()), math.inf]
    rank = _rank(len(runs), confidence)
    return ordered[rank], ordered[-1 - rank]


@checked
def fewest_for_median(confidence: OpenFraction = 0.95) -> int:
    """Return the smallest number n of runs for which `median_interval` is finite, that is, 2·2⁻ⁿ ≤ 1 − confidence.

    Example:
        >>> fewest_for_median(), fewest_for_median(0.5)
        (6, 2)
    """
    return math.ceil(math.log2(2 / (1 - confidence)))


@functools.lru_cache
def _rank(runs: int, confidence: float) -> int:
    """Return the largest rank k; zero if there is none."""
    outside = 2 * scipy.stats.binom.cdf(np.arange(runs // 2), runs, 0.5)
    return int(np.sum(outside <= 1 - confidence))
