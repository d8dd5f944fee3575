"""Powers of a step of heavy ball along modes, in closed form at any number of steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.theory.noise.linear_recursion import whole_steps
from dynascope.theory.sgd import Momentum
from dynascope.validation import require
from dynascope.validation.bounded import NonNegativeNumbers

__all__ = ["StepPowers", "step_powers"]

_FEW = 32  # steps that are taken one by one, where the closed form of the sum would lose digits


class StepPowers(NamedTuple):
    """The answer of a mode to a push, each of the shape of the steps followed by that of the modes.

    Attributes:
        response: u_k, of u_{k+1} = (1 + β − x) u_k − β u_{k−1} from u_0 = 0, u_1 = 1.
        previous: u_{k−1}.
        total: W_k = u_1 + … + u_k.
    """

    response: Float[np.ndarray, "*shape"]
    previous: Float[np.ndarray, "*shape"]
    total: Float[np.ndarray, "*shape"]

    __repr__ = short_repr


@covers(
    network="any near a minimum",
    data="any",
    start="any",
    gives="powers of a step of momentum along modes",
    reference="arXiv:2107.09133",
)
def step_powers(steepness: NonNegativeNumbers, steps: NonNegativeNumbers, *, momentum: Momentum = 0.0) -> StepPowers:
    """What is left of a push k steps later, u_k = (z₊ᵏ − z₋ᵏ)/(z₊ − z₋) with z± the roots of z² − (1 + β − x) z + β.

    Of steps v ← β v − h a, a ← a + η v with x = ηh, the powers are

        a_k = (u_{k+1} − β u_k) a_0 + ηβ u_k v_0 = (1 − x W_k) a_0 + ηβ u_k v_0,   W_k = Σ_{j ≤ k} u_j,

    and so all that is known of a mode after k steps. Nothing is divided by x, so that flat modes, x = 0, are the limit.
    1 − z₊ is computed as 2x/(1 − β + x + √((1 − β + x)² − 4x)), powers by log1p and expm1: huge numbers of steps and
    nearly flat modes keep their digits. Close to x = (1 − √β)² the sum loses (1 − √β)⁻²/1000 units of rounding.

    Args:
        steepness: x = ηh ≥ 0 of each mode, of any shape, below the edge of stability 2(1 + β).
        steps: k ≥ 0, whole, of any shape.
        momentum: β ≥ 0, below one.

    Raises:
        InputError: A number out of range, or numbers of steps that are not whole.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, section 4, in discrete
        time.

    Example:
        >>> powers = step_powers([0.0, 0.5], [1, 2, 3], momentum=0.5)
        >>> print(powers.response)
        [[1.   1.  ]
         [1.5  1.  ]
         [1.75 0.5 ]]
    """
    x, k = np.asarray(steepness), whole_steps("steps", steps).astype(float)
    most = float(x.max(initial=0.0))
    require(
        most < 2 * (1 + momentum),
        f"steepness is {most:g}",
        argument="steepness",
        value=most,
        remedy=f"choose numbers below the edge of stability {2 * (1 + momentum):g}",
    )
    parts = powers_along(x.ravel(), k.ravel(), float(momentum))
    shape = k.shape + x.shape
    return StepPowers(*(part.reshape(shape) for part in parts))


def powers_along(x: np.ndarray, k: np.ndarray, beta: float) -> StepPowers:
    """The powers of modes x at steps k, shape (steps, modes), after all checks."""
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
