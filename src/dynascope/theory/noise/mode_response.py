"""How a mode of momentum answers to a place, a push and a noise, for many modes at once and to all digits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

__all__ = ["ModeResponse", "mode_response"]

_EARLY = 1.0  # phase up to which integrals are taken by quadrature, all of whose terms are positive
# Twelve places are exact for polynomials of degree 23, and so for exponentials over a phase of one, to rounding.
_PLACES, _WEIGHTS = (np.polynomial.legendre.leggauss(12)[0] + 1) / 2, np.polynomial.legendre.leggauss(12)[1] / 2


class ModeResponse(NamedTuple):
    """The solutions h and k of x'' + 2γ x' + ω² x = 0 from (1, 0) and (0, 1), and what they add up to.

    Attributes:
        position: h(t).
        velocity: k(t).
        slope: k'(t) = h − 2γ k.
        area: ∫₀ᵗ k, so that 1 − h = ω² area.
        power: ∫₀ᵗ k², to which the variance of a position that noise drives is proportional.
        slope_power: ∫₀ᵗ k'².
    """

    position: Float[np.ndarray, "*shape"]
    velocity: Float[np.ndarray, "*shape"]
    slope: Float[np.ndarray, "*shape"]
    area: Float[np.ndarray, "*shape"]
    power: Float[np.ndarray, "*shape"]
    slope_power: Float[np.ndarray, "*shape"]


def mode_response(times: np.ndarray, damping: float, squared_frequency: np.ndarray) -> ModeResponse:
    """The response of modes, of the shape to which times and modes broadcast.

    `theory.symmetry.damped_kernels` gives h and k of a single mode. No difference here loses digits: not at early
    times, not of flat modes, of which ω = 0 is one, nor at critical damping; modes with ω² < 0 grow.

    Args:
        times: t ≥ 0.
        damping: γ > 0.
        squared_frequency: ω².
    """
    with np.errstate(all="ignore"):
        clock, square = np.broadcast_arrays(times, squared_frequency)
        clock, square = np.asarray(clock, float), np.asarray(square, float)
        velocity, slope = _velocity(clock, damping, square)
        position = slope + 2 * damping * velocity
        fast, slow, apart = _rates(damping, square)
        # Areas by k itself, without division by the difference of rates, and powers by the energy that is lost.
        area = np.where(apart >= 0, (_decayed(slow, clock) - velocity) / fast, (1 - position) / _nonzero(square))
        power = (area * (2 - square * area) - velocity**2) / (4 * damping)
        # Of weak damping hardly any energy is lost, and the integral is taken in closed form.
        turning = np.sqrt(np.maximum(-apart, 0))
        weak = turning > damping
        safe = np.where(weak, turning, 1.0)
        swing = damping - np.exp(-2 * damping * clock) * (
            damping * np.cos(2 * safe * clock) - safe * np.sin(2 * safe * clock)
        )
        closed = (_decayed(np.asarray(2 * damping), clock) - swing / (2 * _nonzero(square))) / (2 * safe**2)
        power = np.where(weak, closed, power)
        early = np.maximum(np.abs(fast), np.sqrt(np.abs(square))) * clock < _EARLY
        if early.any():
            start, bend = clock[early], square[early]
            within = _velocity(start * _PLACES[:, None], damping, np.broadcast_to(bend, (len(_PLACES), *bend.shape)))[0]
            area = np.array(area)
            power = np.array(power)
            area[early] = start * (_WEIGHTS @ within)
            power[early] = start * (_WEIGHTS @ within**2)
        slope_power = velocity * slope + damping * velocity**2 + square * power
        parts = (position, velocity, slope, area, power, slope_power)
        return ModeResponse(*map(np.asarray, parts))


def _rates(damping: float, square: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The fast and the slow rate where they are real, and γ² − ω²."""
    apart = np.asarray(damping**2 - square)
    root = np.sqrt(np.maximum(apart, 0))
    return np.asarray(damping + root), np.asarray(square / (damping + root)), apart


def _velocity(clock: np.ndarray, damping: float, square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """K and k'."""
    fast, slow, apart = _rates(damping, square)
    root = np.sqrt(np.abs(apart))
    falling = np.exp(-slow * clock)
    between = _decayed(np.asarray(2 * root), clock)  # (1 − exp(−2√(γ² − ω²) t)) / (2√(γ² − ω²))
    real = falling * between, np.exp(-fast * clock) - slow * falling * between
    envelope = np.exp(-damping * clock)
    # A sine over its argument, which is one at critical damping.
    wave = envelope * clock * np.sinc(root * clock / np.pi)
    turning = wave, envelope * np.cos(root * clock) - damping * wave
    found = [np.asarray(np.where(apart >= 0, *each)) for each in zip(real, turning, strict=True)]
    return found[0], found[1]


def _decayed(rate: np.ndarray, clock: np.ndarray) -> np.ndarray:
    """(1 − exp(−rate t))/rate, which is t at rate zero."""
    product = rate * clock
    small = np.abs(product) < 1e-300
    return np.asarray(np.where(small, clock, -np.expm1(-product) / np.where(small, 1.0, rate)))


def _nonzero(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.where(values == 0, 1.0, values))
