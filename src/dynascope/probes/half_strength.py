"""When something that is learned along a sigmoid first has half of its strength."""

from __future__ import annotations

import math

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import logit

__all__ = ["first_half", "first_passages", "first_zero", "spread_of_halves"]


def first_half(steps: np.ndarray, strength: np.ndarray) -> float:
    """The first step at which half strength is passed, infinite if it is not; logit(R/S) is interpolated.

    A logistic curve has a straight one, however few records it has.
    """
    passed = strength >= 0.5
    if not passed.any():
        return math.inf
    after = max(int(np.argmax(passed)), 1)
    around = slice(after - 1, after + 1)
    return float(np.interp(0.0, logit(np.clip(strength[around], 1e-6, 1 - 1e-6)), steps[around]))


def spread_of_halves(halves: np.ndarray) -> np.ndarray:
    """Standard deviation over runs, the first axis; infinite where one of them does not reach half strength."""
    reached = np.isfinite(halves)
    return np.where(reached.all(axis=0), np.where(reached, halves, 0.0).std(axis=0, ddof=1), np.inf)


def first_passages(times: np.ndarray, curves: np.ndarray, level: float) -> list[float]:
    """When each of the curves, positive and of shape (times, curves), first passes a level; infinite if it does not.

    Found on a cubic spline of its logarithm.
    """
    return [first_zero(times, np.log(each / level)) for each in curves.T]


def first_zero(times: np.ndarray, curve: np.ndarray) -> float:
    """When a curve, interpolated by a cubic spline, is first zero; infinite if it never is."""
    roots = CubicSpline(times, curve).roots(extrapolate=False)
    return float(roots[0]) if len(roots) else math.inf
