"""The answer of a damped oscillator to a place and to a push, at any damping and any time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.validation.bounded import NonNegativeFloat, NonNegativeNumbers

__all__ = ["DampedKernels", "damped_kernels"]

_EARLY = 0.3  # phase up to which the series is summed, which is then exact to rounding
_TERMS = 18


class DampedKernels(NamedTuple):
    """The two solutions at the times, each of their shape.

    Attributes:
        position: h(t), from h(0) = 1, h'(0) = 0.
        velocity: k(t), from k(0) = 0, k'(0) = 1.
        lost: 1 − h(t), with all its digits where h is near one.
    """

    position: Float[np.ndarray, "*times"]
    velocity: Float[np.ndarray, "*times"]
    lost: Float[np.ndarray, "*times"]

    __repr__ = short_repr


@covers(
    network="any with a symmetry",
    data="any",
    start="any",
    gives="the kernels h and k of a charge that momentum and weight decay move",
    reference="arXiv:2012.04728",
)
def damped_kernels(
    times: NonNegativeNumbers, *, damping: NonNegativeFloat, frequency: NonNegativeFloat
) -> DampedKernels:
    """The solutions h and k of x'' + 2γ x' + ω² x = 0 that start at (1, 0) and (0, 1).

        k = [exp(α₊t) − exp(α₋t)] / (α₊ − α₋),   h = exp(α₊t) − α₊ k,   α± = −γ ± √(γ² − ω²) where ω < γ,
        k = exp(−γt) sin(νt)/ν,   h = exp(−γt) cos νt + γ k,   ν = √(ω² − γ²) where ω > γ,

    and the limit of both between. α₊ is computed as −ω²/(γ + √(γ² − ω²)), and differences of exponentials by expm1, so
    that slow decay, late times and critical damping keep their digits and nothing overflows.

    Args:
        times: Times t ≥ 0, of any shape.
        damping: γ ≥ 0.
        frequency: ω ≥ 0.

    Raises:
        InputError: A number out of range.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728.

    Example:
        >>> kernels = damped_kernels([1.0, 5.0], damping=0.7, frequency=0.7)
        >>> print(kernels.position.round(6), kernels.velocity.round(6))
        [0.844195 0.135888] [0.496585 0.150987]
    """
    with np.errstate(all="ignore"):
        return _kernels(np.asarray(times), float(damping), float(frequency))


def _kernels(clock: np.ndarray, damping: float, frequency: float) -> DampedKernels:
    # The product of roots, as the square of a large rate is infinite.
    spread = np.sqrt(abs(damping - frequency)) * np.sqrt(damping + frequency)
    if frequency <= damping:
        slow = frequency * (frequency / (damping + spread)) if frequency else 0.0
        gap = 2 * spread
        both = -np.expm1(-gap * clock) / gap if gap else clock
        velocity = np.exp(-slow * clock) * both
        position = np.exp(-slow * clock) + slow * velocity
        lost = -np.expm1(-slow * clock) - slow * velocity
    else:
        velocity = np.exp(-damping * clock) * np.sin(spread * clock) / spread
        position = np.exp(-damping * clock) * np.cos(spread * clock) + damping * velocity
        lost = 1 - position
    # What is lost early is of second order, and the terms of first order would cancel.
    fast = max(damping, frequency)
    early = fast * clock < _EARLY
    phase = np.asarray(np.where(early, fast * clock, 0.0))
    lost = np.where(early, _lost_early(phase, damping, frequency, fast), lost)
    return DampedKernels(np.asarray(position), np.asarray(velocity), lost)


def _lost_early(phase: np.ndarray, damping: float, frequency: float, fast: float) -> np.ndarray:
    """1 − h = ω² ∫ k, by the power series of k in a unit of time in which nothing is faster than one."""
    if fast == 0:
        return np.zeros_like(phase)
    damped, turned = damping / fast, frequency / fast
    before, now, total, power = 0.0, 1.0, np.zeros_like(phase), phase * phase
    for j in range(1, _TERMS):
        total = total + now * power / (j + 1)
        power = power * phase
        before, now = now, -(2 * damped * j * now + turned**2 * before) / ((j + 1) * j)
    return np.asarray(turned**2 * total)
