"""Times at which a quantity with a sigmoidal learning curve first reaches half of its strength."""

from __future__ import annotations

import math

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import logit

__all__ = ["first_half", "first_passages", "first_zero", "spread_of_halves"]


def first_half(steps: np.ndarray, strength: np.ndarray) -> float:
    """Return the step at which the strength first reaches one half, by interpolating its logit; infinite if none.

    The logit of a logistic curve is linear in time, so the result is exact for logistic curves, however sparsely they
    are recorded.
    """
    passed = strength >= 0.5
    if not passed.any():
        return math.inf
    after = max(int(np.argmax(passed)), 1)
    around = slice(after - 1, after + 1)
    return float(np.interp(0.0, logit(np.clip(strength[around], 1e-6, 1 - 1e-6)), steps[around]))


def spread_of_halves(halves: np.ndarray) -> np.ndarray:
    """Compute the standard deviation over runs (first axis) of the half-strength times; infinite if any is infinite."""
    reached = np.isfinite(halves)
    return np.where(reached.all(axis=0), np.where(reached, halves, 0.0).std(axis=0, ddof=1), np.inf)


def first_passages(times: np.ndarray, curves: np.ndarray, level: float) -> list[float]:
    """Return the time at which each curve first passes a level, from a spline of its logarithm; infinite if none.

    The curves must be positive, with shape (times, curves).
    """
    return [first_zero(times, np.log(each / level)) for each in curves.T]


def first_zero(times: np.ndarray, curve: np.ndarray) -> float:
    """Return the time of the first zero of a curve, from a cubic spline; infinite if there is none."""
    roots = CubicSpline(times, curve).roots(extrapolate=False)
    return float(roots[0]) if len(roots) else math.inf
