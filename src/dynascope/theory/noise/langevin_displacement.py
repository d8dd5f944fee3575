"""Displacement of a stationary damped oscillator driven by noise, the small-step limit of SGD."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import SMALL_STEPS
from dynascope.theory.noise.displacement import covers_stationary, require_no_negative_curvature
from dynascope.theory.noise.quadratic_loss import noisy_steps
from dynascope.theory.sgd import SGD
from dynascope.theory.symmetry.kernels import mode_response
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers

__all__ = ["LangevinDisplacement", "langevin_displacement"]


class LangevinDisplacement(NamedTuple):
    """Moments of the stationary process, each with the shape of the times.

    Attributes:
        squared: E‖θ(t) − θ(0)‖².
        exponent: c(t) = d log E‖θ(t) − θ(0)‖²/d log t, equal to 2 at t = 0.
        velocity_correlation: E⟨v(t), v(0)⟩.
    """

    squared: Float[np.ndarray, "*times"]
    exponent: Float[np.ndarray, "*times"]
    velocity_correlation: Float[np.ndarray, "*times"]

    __repr__ = short_repr


@covers_stationary(
    gives="the squared displacement in the Langevin equation of SGD, and its local exponent",
    exact=False,
    assumes=(SMALL_STEPS,),
)
def langevin_displacement(
    curvature: FiniteNumbers,
    noise: NonNegativeNumbers,
    times: NonNegativeNumbers,
    sgd: SGD,
) -> LangevinDisplacement:
    """Displacement, local exponent and velocity autocorrelation of stationary SGD in the Langevin approximation.

        E‖Δ‖² = Σ 2B (1 − h(t)) over modes,   B = ηs/(2S(1 − β)(ρ + λ)),   c(t) = t Σ 2Bω² k(t)/E‖Δ‖²

    h(t) and k(t) are the kernels of `theory.symmetry.damped_kernels` with γ = (1 − β)/(η(1 + β)) and
    ω² = 2(ρ + λ)/(η(1 + β)). Flat modes diffuse: they add 2s/(S(1 − β²)) [t/2γ − (1 − e^{−2γt})/4γ²]. The velocity
    autocorrelation is Σ s/(S(1 − β²)) (h − 2γk). `stationary_displacement` is exact for steps of any size and converges
    to this result as η → 0 at fixed t = ηk. At late times, `stationary_displacement` is larger by the factor
    1/(1 − η(ρ + λ)/2(1 + β)) along each mode.

    The cost is 100 operations per mode and time; modes are processed one at a time.

    Args:
        curvature: ρ of each mode, a number or an array of shape (modes,), with ρ + λ ≥ 0.
        noise: s ≥ 0, the variance of the per-sample gradients along each mode, a number or an array of shape (modes,).
        times: t = ηk ≥ 0, any shape.
        sgd: η, β, λ, S and N, with η (ρ + λ) < 2(1 + β).

    Raises:
        InputError: If a setting is out of range, the steps diverge, or ρ + λ is negative along a mode.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, section 6.

    Example:
        >>> sgd = SGD(learning_rate=0.05, momentum=0.9, batch_size=8)
        >>> print(langevin_displacement([2.0, 0.1, 1e-6], 0.7, 1.0, sgd).squared.round(6))
        0.488648
    """
    modes = noisy_steps(curvature, noise, sgd)
    require_no_negative_curvature(modes)
    clock = np.asarray(times)
    squared, rate, correlation = (np.zeros(clock.shape) for _ in range(3))
    with np.errstate(all="ignore"):
        pairs = zip(np.ravel(modes.squared_frequency), np.ravel(modes.velocity_variance), strict=True)
        for square, variance in pairs:
            moved = mode_response(clock, modes.damping, np.asarray(square))
            squared += 2 * variance * moved.area
            rate += 2 * variance * moved.velocity
            correlation += variance * moved.slope
        slope = np.where(squared > 0, clock * rate / np.where(squared > 0, squared, 1.0), 2.0)
    return LangevinDisplacement(squared, np.asarray(slope), correlation)
