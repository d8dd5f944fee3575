"""Powers of a heavy-ball step along modes, in closed form for any number of steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

__all__ = ["StepPowers", "powers_along"]

_FEW = 32  # largest number of steps for the recursion; the closed form of the sum would cancel there


class StepPowers(NamedTuple):
    """Impulse response of modes, each array of shape (steps, modes).

    Attributes:
        response: u_k of the recursion u_{k+1} = (1 + β − x) u_k − β u_{k−1} from u_0 = 0, u_1 = 1.
        previous: u_{k−1}.
        total: W_k = u_1 + … + u_k.
    """

    response: Float[np.ndarray, "steps modes"]
    previous: Float[np.ndarray, "steps modes"]
    total: Float[np.ndarray, "steps modes"]


def powers_along(x: np.ndarray, k: np.ndarray, beta: float) -> StepPowers:
    """Impulse response of the heavy-ball recursion after k steps, and its sum.

        u_k = (z₊ᵏ − z₋ᵏ)/(z₊ − z₋)   with the roots z± of z² − (1 + β − x) z + β

    For steps v ← β v − h a, a ← a + η v with x = ηh below the stability limit 2(1 + β),

        a_k = (u_{k+1} − β u_k) a_0 + ηβ u_k v_0 = (1 − x W_k) a_0 + ηβ u_k v_0.

    The formulas do not divide by x, so flat modes, x = 0, are included. 1 − z₊ is computed as
    2x/(1 − β + x + √((1 − β + x)² − 4x)), and powers use log1p and expm1. The result is therefore accurate for huge
    numbers of steps and nearly flat modes. Close to x = (1 − √β)² the rounding error of the sum is (1 − √β)⁻²/1000
    units in the last place.
    """
    found = np.empty((3, len(k), len(x)))
    few = k <= _FEW
    found[:, few] = _by_recursion(1 + beta - x, beta, k[few])
    oscillates = (x > (1 - np.sqrt(beta)) ** 2) & (x < (1 + np.sqrt(beta)) ** 2)
    with np.errstate(all="ignore"):
        for kind, powers in ((oscillates, _complex_roots), (~oscillates, _real_roots)):
            if not kind.any() or few.all():
                continue
            part = x[kind]
            # As a product of differences; trace² − 4β would cancel near critical damping.
            spread = np.sqrt(np.abs((part - (1 - np.sqrt(beta)) ** 2) * (part - (1 + np.sqrt(beta)) ** 2)))
            entries: Any = np.ix_(np.arange(3), np.flatnonzero(~few), np.flatnonzero(kind))
            found[entries] = powers(part, spread, beta, k[~few, None])
    return StepPowers(*found)


def _by_recursion(trace: np.ndarray, beta: float, k: np.ndarray) -> np.ndarray:
    """Compute u_k, u_{k−1} and W_k by the recursion, shape (3, steps, modes)."""
    found = np.zeros((3, len(k), len(trace)))
    if len(k) == 0:
        return found
    # u_{−1} = −1/β is never used; zero is a placeholder.
    before, now, total = np.zeros_like(trace), np.zeros_like(trace), np.zeros_like(trace)
    for j in range(int(k.max()) + 1):
        found[:, k == j] = np.stack([now, before, total])[:, None]
        before, now = now, trace * now - beta * before if j else np.ones_like(trace)
        total = total + now
    return found


def _complex_roots(x: np.ndarray, spread: np.ndarray, beta: float, k: np.ndarray) -> tuple[np.ndarray, ...]:
    """Compute u_k, u_{k−1} and W_k for complex roots √β exp(±iφ)."""
    trace = 1 + beta - x
    angle = np.arctan2(spread, np.abs(trace))

    def response(k: np.ndarray) -> np.ndarray:
        return _sign(trace, k) * np.sqrt(beta) ** (k - 1) * np.sin(k * angle) / np.sin(angle)

    now = response(k)
    return now, response(k - 1), (1 - response(k + 1) + beta * now) / x


def _real_roots(x: np.ndarray, spread: np.ndarray, beta: float, k: np.ndarray) -> tuple[np.ndarray, ...]:
    """Compute u_k, u_{k−1} and W_k for real roots of equal sign; the larger one is 1 − `slow` if both are positive."""
    trace = 1 + beta - x
    slow, fast = 2 * x / (1 - beta + x + spread), (1 - beta + x + spread) / 2
    larger = np.where(trace < 0, (np.abs(trace) + spread) / 2, 1 - slow)
    logarithm = np.where(trace < 0, np.log(larger), np.log1p(-slow))
    log_ratio = np.log1p(-spread / larger)

    def response(k: np.ndarray) -> np.ndarray:
        ratio = np.where(spread > 0, -np.expm1(k * log_ratio) / spread, k / larger)
        # Both roots are zero if a step without momentum reaches the minimum.
        return np.where(larger > 0, _sign(trace, k) * np.exp(k * logarithm) * ratio, 0.0)

    now = response(k)
    steep = (1 - response(k + 1) + beta * now) / np.where(x > 0, x, 1.0)
    slow_sum = np.where(slow > 0, -np.expm1(k * np.log1p(-slow)) / np.where(slow > 0, slow, 1.0), k)
    fast_sum = -np.expm1(k * np.log1p(-fast)) / fast
    flat = ((1 - slow) * slow_sum - (1 - fast) * fast_sum) / spread
    return now, response(k - 1), np.where((trace > 0) & (spread > slow), flat, steep)


def _sign(trace: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Sign of u_k: if the trace is negative, the roots are negative and the sign alternates."""
    return np.where(trace < 0, -1.0, 1.0) ** (k - 1)
