"""Jump times of a diagonal linear network along its path of saddles, with the reasons for slow jumps."""

from __future__ import annotations

import itertools

import numpy as np

from dynascope.theory.staircase.coefficient_growth import CoefficientGrowth
from dynascope.theory.staircase.saddle_path import SaddlePath

__all__ = ["jump_phrases", "slow_reasons", "times_at_scale"]

# Calibrated on 1274 jumps of random problems with β = u v at scale 1e-8. The slope error exceeded 1 % for 3 of the 457
# jumps within these bounds, and for 239 of the 817 others.
_RELAXATION_TIMES = 8.0
_VISIBLE = 0.01


def times_at_scale(x: np.ndarray, y: np.ndarray, path: SaddlePath, growth: CoefficientGrowth) -> np.ndarray:
    """Compute the time at which the loss crosses the middle of each drop, to first order beyond the limit.

    The growth of a coefficient acts on the integrals of the other coefficients like a step to its final value. The step
    occurs when the integral of the growing coefficient would reach its final value at constant multiplier. This
    description is exact if active coefficients relax without delay.
    """
    integral, clock, times = np.zeros(x.shape[1]), 0.0, []
    multipliers = (y - path.maps @ x.T) @ x / len(x)
    for k in range(len(path.times)):
        before, after = path.maps[k], path.maps[k + 1]
        multiplier = np.where(before == 0, multipliers[k], 0.0)
        newly_free = (np.abs(path.integrals[k + 1]) == 1) & (path.integrals[k + 1] != path.integrals[k])
        hit = int(np.argmax(np.where(newly_free, np.abs(after), -1.0)))
        rate, sign = abs(multiplier[hit]), path.integrals[k + 1][hit]
        boundary = clock + max((growth.threshold - sign * integral[hit]) / rate, 0.0)
        grown = boundary + _reached(growth, after[hit]) / rate
        # A coefficient that enters and leaves at the same jump has no final size.
        size = abs(after[hit]) if after[hit] != 0 else 1.0
        times.append(grown + growth.half_loss(size, rate))
        switch = max(grown, clock)
        integral = integral + multiplier * (switch - clock)
        integral = np.where(after != 0, np.sign(after) * (growth.threshold + _reached(growth, after)), integral)
        clock = switch
    return np.maximum.accumulate(np.maximum(times, 0.0))


def _reached(growth: CoefficientGrowth, beta: np.ndarray | float) -> np.ndarray:
    """Return |G| − threshold of each coefficient; 0 for β = 0."""
    return np.where(beta == 0, 0.0, growth.reached(np.abs(np.where(beta == 0, 1.0, beta))))


def jump_phrases(path: SaddlePath, names: list[str]) -> tuple[str, ...]:
    """Describe each jump by the inputs that it learns and drops."""
    return tuple(_phrase(before, after, names) for before, after in itertools.pairwise(path.maps))


def _phrase(before: np.ndarray, after: np.ndarray, names: list[str]) -> str:
    gained = [names[i] for i in np.flatnonzero((before == 0) & (after != 0))]
    lost = [names[i] for i in np.flatnonzero((before != 0) & (after == 0))]
    parts = [f"learns {', '.join(gained)}"] if gained else []
    return "; ".join([*parts, *([f"drops {', '.join(lost)}"] if lost else [])]) or "adjusts"


def slow_reasons(x: np.ndarray, path: SaddlePath, growth: CoefficientGrowth, names: list[str]) -> tuple[str, ...]:
    """Return the reason why the time of each jump may differ from the limit at this scale; empty if there is none."""
    near = [np.array([], dtype=int)] + [
        _near_boundary(*each, growth) for each in zip(path.maps[1:], path.integrals[1:], strict=True)
    ]
    durations = np.append(np.diff(path.times), np.inf)
    ends = np.append(path.integrals[2:], path.integrals[-1:], axis=0)
    curvature = x.T @ x / len(x)
    lasting = [np.inf] + [
        _relaxation_times(curvature, *each, growth)
        for each in zip(path.maps[1:], path.integrals[1:], ends, durations, strict=True)
    ]

    def unsettled(plateau: int) -> str:
        if lasting[plateau] < _RELAXATION_TIMES:
            return f"the plateau lasts only {max(lasting[plateau], 0.0):.1f} relaxation times"
        margins = 1 - np.abs(path.integrals[plateau][near[plateau]])
        if not len(margins):
            return ""
        return f"{names[near[plateau][np.argmin(margins)]]} is only {100 * margins.min():.1f} % inside its boundary"

    reasons = []
    for k in range(len(path.times)):
        sides = (("before", unsettled(k)), ("after", unsettled(k + 1)))
        parts = [f"{side} it, {reason}" for side, reason in sides if reason]
        earlier = {i for each in near[:k] for i in each}
        learned = np.flatnonzero((path.maps[k] == 0) & (path.maps[k + 1] != 0))
        parts += [f"{names[i]} was near its boundary on an earlier plateau" for i in learned if i in earlier]
        reasons.append("; ".join(parts))
    return tuple(reasons)


def _relaxation_times(
    curvature: np.ndarray,
    beta: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    duration: float,
    growth: CoefficientGrowth,
) -> float:
    """Duration of a plateau in units of the relaxation time of its slowest coordinate; S changes from `start` to `end`.

    The result is ∞ if the plateau is long enough for all coordinates.
    """
    if np.isinf(duration):
        return np.inf
    active = np.flatnonzero(beta)
    # Near the plateau, an active coordinate relaxes as β' = rate(β)·m, with m linear in β. These are the rates in
    # coordinates in which the relaxation matrix is symmetric.
    roots = np.sqrt(growth.rate(np.abs(beta[active])) * duration * growth.threshold)
    often = roots[:, None] * curvature[np.ix_(active, active)] * roots
    decayed = growth.e_folds(np.abs(end - start)[(np.abs(start) == 1.0) & (beta == 0)])
    try:
        # A Cholesky factorisation is much faster than the eigenvalues, which only failing plateaus need.
        np.linalg.cholesky(often - _RELAXATION_TIMES * np.eye(len(active)))
        slowest = np.inf
    except np.linalg.LinAlgError:
        slowest = np.linalg.eigvalsh(often)[0]
    return float(min(slowest, *decayed, np.inf))


def _near_boundary(beta: np.ndarray, integral: np.ndarray, growth: CoefficientGrowth) -> np.ndarray:
    """Return the inactive coordinates that are not negligible because they are close to, but not on, their boundary."""
    inside = (beta == 0) & (np.abs(integral) < 1)
    return np.flatnonzero(inside & (growth.e_folds(1 - np.abs(integral)) < -np.log(_VISIBLE)))
