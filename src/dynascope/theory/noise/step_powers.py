"""Powers of a step of heavy ball along modes, in closed form at any number of steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

__all__ = ["StepPowers", "powers_along"]

_FEW = 32  # steps that are taken one by one, where the closed form of the sum would lose digits


class StepPowers(NamedTuple):
    """The answer of modes to a push, each of shape (steps, modes).

    Attributes:
        response: u_k, of u_{k+1} = (1 + β − x) u_k − β u_{k−1} from u_0 = 0, u_1 = 1.
        previous: u_{k−1}.
        total: W_k = u_1 + … + u_k.
    """

    response: Float[np.ndarray, "steps modes"]
    previous: Float[np.ndarray, "steps modes"]
    total: Float[np.ndarray, "steps modes"]


def powers_along(x: np.ndarray, k: np.ndarray, beta: float) -> StepPowers:
    """What is left of a push k steps later, u_k = (z₊ᵏ − z₋ᵏ)/(z₊ − z₋) with z± the roots of z² − (1 + β − x) z + β.

    Of steps v ← β v − h a, a ← a + η v with x = ηh, below the edge 2(1 + β), the powers are

        a_k = (u_{k+1} − β u_k) a_0 + ηβ u_k v_0 = (1 − x W_k) a_0 + ηβ u_k v_0.

    Nothing is divided by x, so that flat modes, x = 0, are the limit. 1 − z₊ is computed as
    2x/(1 − β + x + √((1 − β + x)² − 4x)), powers by log1p and expm1: huge numbers of steps and nearly flat modes keep
    their digits. Close to x = (1 − √β)² the sum loses (1 − √β)⁻²/1000 units of rounding.
    """
    found = np.empty((3, len(k), len(x)))
    few = k <= _FEW
    found[:, few] = _one_by_one(1 + beta - x, beta, k[few])
    turning = (x > (1 - np.sqrt(beta)) ** 2) & (x < (1 + np.sqrt(beta)) ** 2)
    with np.errstate(all="ignore"):
        for own, powers in ((turning, _turning), (~turning, _relaxing)):
            if not own.any() or few.all():
                continue
            part = x[own]
            # The product of differences, as the square of the trace would cancel near the critical steepness.
            spread = np.sqrt(np.abs((part - (1 - np.sqrt(beta)) ** 2) * (part - (1 + np.sqrt(beta)) ** 2)))
            places: Any = np.ix_(np.arange(3), np.flatnonzero(~few), np.flatnonzero(own))
            found[places] = powers(part, spread, beta, k[~few, None])
    return StepPowers(*found)


def _one_by_one(trace: np.ndarray, beta: float, k: np.ndarray) -> np.ndarray:
    """What the recursion gives, shape (3, steps, modes)."""
    found = np.zeros((3, len(k), len(trace)))
    if len(k) == 0:
        return found
    # u_{-1} = −1/β: nothing asks for what was before the push.
    before, now, total = np.zeros_like(trace), np.zeros_like(trace), np.zeros_like(trace)
    for j in range(int(k.max()) + 1):
        found[:, k == j] = np.stack([now, before, total])[:, None]
        before, now = now, trace * now - beta * before if j else np.ones_like(trace)
        total = total + now
    return found


def _turning(x: np.ndarray, spread: np.ndarray, beta: float, k: np.ndarray) -> tuple[np.ndarray, ...]:
    """u_k, u_{k−1} and W_k of two complex roots √β exp(±iφ)."""
    trace = 1 + beta - x
    angle = np.arctan2(spread, np.abs(trace))

    def response(k: np.ndarray) -> np.ndarray:
        return _sign(trace, k) * np.sqrt(beta) ** (k - 1) * np.sin(k * angle) / np.sin(angle)

    now = response(k)
    return now, response(k - 1), (1 - response(k + 1) + beta * now) / x


def _relaxing(x: np.ndarray, spread: np.ndarray, beta: float, k: np.ndarray) -> tuple[np.ndarray, ...]:
    """The same of two real roots of one sign, 1 − e where both are positive."""
    trace = 1 + beta - x
    slow, fast = 2 * x / (1 - beta + x + spread), (1 - beta + x + spread) / 2
    larger = np.where(trace < 0, (np.abs(trace) + spread) / 2, 1 - slow)
    logarithm = np.where(trace < 0, np.log(larger), np.log1p(-slow))
    apart = np.log1p(-spread / larger)

    def response(k: np.ndarray) -> np.ndarray:
        ratio = np.where(spread > 0, -np.expm1(k * apart) / spread, k / larger)
        # Both roots are zero where a step without momentum goes to the minimum.
        return np.where(larger > 0, _sign(trace, k) * np.exp(k * logarithm) * ratio, 0.0)

    now = response(k)
    steep = (1 - response(k + 1) + beta * now) / np.where(x > 0, x, 1.0)
    kept = np.where(slow > 0, -np.expm1(k * np.log1p(-slow)) / np.where(slow > 0, slow, 1.0), k)
    gone = -np.expm1(k * np.log1p(-fast)) / fast
    flat = ((1 - slow) * kept - (1 - fast) * gone) / spread
    return now, response(k - 1), np.where((trace > 0) & (spread > slow), flat, steep)


def _sign(trace: np.ndarray, k: np.ndarray) -> np.ndarray:
    """That of u_k: roots of the opposite trace have the opposite sign."""
    return np.where(trace < 0, -1.0, 1.0) ** (k - 1)
