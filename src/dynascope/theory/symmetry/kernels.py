"""Response of a damped oscillator to an initial position and velocity, for any damping and time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.validation.bounded import NonNegativeFloat, NonNegativeNumbers

__all__ = ["DampedKernels", "ModeResponse", "damped_kernels", "mode_response"]

_EARLY = 1.0  # phase up to which integrals use quadrature, a sum of positive terms without cancellation
# Twelve nodes are exact for polynomials of degree 23, and exact to rounding for exponentials over a phase of one.
_NODES, _WEIGHTS = (np.polynomial.legendre.leggauss(12)[0] + 1) / 2, np.polynomial.legendre.leggauss(12)[1] / 2


class DampedKernels(NamedTuple):
    """The two fundamental solutions at the given times, each with the shape of the times.

    Attributes:
        position: h(t), with h(0) = 1, h'(0) = 0.
        velocity: k(t), with k(0) = 0, k'(0) = 1.
        lost: 1 − h(t), computed without cancellation for h near one.
    """

    position: Float[np.ndarray, "*times"]
    velocity: Float[np.ndarray, "*times"]
    lost: Float[np.ndarray, "*times"]

    __repr__ = short_repr


@covers(
    network="any with a symmetry",
    data="any",
    start="any",
    gives="the kernels h and k of a charge under momentum and weight decay",
    reference="arXiv:2012.04728",
)
def damped_kernels(
    times: NonNegativeNumbers, *, damping: NonNegativeFloat, frequency: NonNegativeFloat
) -> DampedKernels:
    """Fundamental solutions h and k of x'' + 2γ x' + ω² x = 0, with initial values (1, 0) and (0, 1).

        k = [exp(α₊t) − exp(α₋t)] / (α₊ − α₋),   h = exp(α₊t) − α₊ k,   α± = −γ ± √(γ² − ω²)   for ω < γ,
        k = exp(−γt) sin(νt)/ν,   h = exp(−γt) cos νt + γ k,   ν = √(ω² − γ²)   for ω > γ,

    with the common limit at ω = γ. The results are accurate for slow decay, late times and critical damping, and do not
    overflow.

    Args:
        times: Times t ≥ 0, any shape.
        damping: γ ≥ 0.
        frequency: ω ≥ 0.

    Raises:
        InputError: If a number is out of range.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728.

    Example:
        >>> kernels = damped_kernels([1.0, 5.0], damping=0.7, frequency=0.7)
        >>> print(kernels.position.round(6), kernels.velocity.round(6))
        [0.844195 0.135888] [0.496585 0.150987]
    """
    with np.errstate(all="ignore"):
        # In units of the faster rate, whose square may overflow.
        fast = max(float(damping), float(frequency)) or 1.0
        square = np.asarray((frequency / fast) ** 2)
        found = mode_response(np.asarray(fast * np.asarray(times)), damping / fast, square)
        return DampedKernels(found.position, found.velocity / fast, np.asarray(square * found.area))


class ModeResponse(NamedTuple):
    """Fundamental solutions h and k of x'' + 2γ x' + ω² x = 0, and their integrals.

    Attributes:
        position: h(t), with initial values (1, 0).
        velocity: k(t), with initial values (0, 1).
        slope: k'(t) = h − 2γ k.
        area: ∫₀ᵗ k, hence 1 − h = ω² area.
        power: ∫₀ᵗ k², proportional to the variance of a position driven by white noise.
        slope_power: ∫₀ᵗ k'².
    """

    position: Float[np.ndarray, "*shape"]
    velocity: Float[np.ndarray, "*shape"]
    slope: Float[np.ndarray, "*shape"]
    area: Float[np.ndarray, "*shape"]
    power: Float[np.ndarray, "*shape"]
    slope_power: Float[np.ndarray, "*shape"]


def mode_response(times: np.ndarray, damping: float, squared_frequency: np.ndarray) -> ModeResponse:
    """Response of modes, in the broadcast shape of the times t and ω²; modes with ω² < 0 grow.

    The results are accurate to rounding at early times, for flat modes and at critical damping.
    """
    with np.errstate(all="ignore"):
        clock, square = np.broadcast_arrays(times, squared_frequency)
        clock, square = np.asarray(clock, float), np.asarray(square, float)
        velocity, slope = _velocity(clock, damping, square)
        position = slope + 2 * damping * velocity
        fast, slow, discriminant = _rates(damping, square)
        # The area follows from k without division by the difference of rates, the power from the dissipated energy.
        area = np.where(discriminant >= 0, (_decayed(slow, clock) - velocity) / fast, (1 - position) / _nonzero(square))
        power = (area * (2 - square * area) - velocity**2) / (4 * damping)
        # For weak damping hardly any energy is dissipated, and the power is computed in closed form.
        oscillating = np.sqrt(np.maximum(-discriminant, 0))
        weak = oscillating > damping
        safe = np.where(weak, oscillating, 1.0)
        oscillation = damping - np.exp(-2 * damping * clock) * (
            damping * np.cos(2 * safe * clock) - safe * np.sin(2 * safe * clock)
        )
        closed = (_decayed(np.asarray(2 * damping), clock) - oscillation / (2 * _nonzero(square))) / (2 * safe**2)
        power = np.where(weak, closed, power)
        early = np.maximum(np.abs(fast), np.sqrt(np.abs(square))) * clock < _EARLY
        if early.any():
            start, early_square = clock[early], square[early]
            within = _velocity(
                start * _NODES[:, None], damping, np.broadcast_to(early_square, (len(_NODES), *early_square.shape))
            )[0]
            area = np.array(area)
            power = np.array(power)
            area[early] = start * (_WEIGHTS @ within)
            power[early] = start * (_WEIGHTS @ within**2)
        slope_power = velocity * slope + damping * velocity**2 + square * power
        parts = (position, velocity, slope, area, power, slope_power)
        return ModeResponse(*map(np.asarray, parts))


def _rates(damping: float, square: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fast and slow decay rate, if real, and γ² − ω²."""
    discriminant = np.asarray(damping**2 - square)
    root = np.sqrt(np.maximum(discriminant, 0))
    return np.asarray(damping + root), np.asarray(square / _nonzero(np.asarray(damping + root))), discriminant


def _velocity(clock: np.ndarray, damping: float, square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The kernel k and its derivative k'."""
    fast, slow, discriminant = _rates(damping, square)
    root = np.sqrt(np.abs(discriminant))
    slow_decay = np.exp(-slow * clock)
    between = _decayed(np.asarray(2 * root), clock)  # (1 − exp(−2√(γ² − ω²) t)) / (2√(γ² − ω²))
    real = slow_decay * between, np.exp(-fast * clock) - slow * slow_decay * between
    envelope = np.exp(-damping * clock)
    # sin(x)/x, which is one at critical damping.
    wave = envelope * clock * np.sinc(root * clock / np.pi)
    oscillating = wave, envelope * np.cos(root * clock) - damping * wave
    found = [np.asarray(np.where(discriminant >= 0, *each)) for each in zip(real, oscillating, strict=True)]
    return found[0], found[1]


def _decayed(rate: np.ndarray, clock: np.ndarray) -> np.ndarray:
    """(1 − exp(−rate t))/rate, or t if the rate is zero."""
    product = rate * clock
    small = np.abs(product) < 1e-300
    return np.asarray(np.where(small, clock, -np.expm1(-product) / np.where(small, 1.0, rate)))


def _nonzero(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.where(values == 0, 1.0, values))
