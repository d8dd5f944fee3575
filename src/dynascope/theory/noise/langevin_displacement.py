"""How far a damped oscillator with noise, the limit of small steps of SGD, goes in a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import SMALL_STEPS
from dynascope.theory.noise.displacement import covers_at_rest, not_upwards
from dynascope.theory.noise.quadratic_loss import noisy_steps
from dynascope.theory.sgd import SGD
from dynascope.theory.symmetry.kernels import mode_response
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers

__all__ = ["LangevinDisplacement", "langevin_displacement"]


class LangevinDisplacement(NamedTuple):
    """Moments of the stationary process at the times, each of their shape.

    Attributes:
        squared: E‖θ(t) − θ(0)‖².
        exponent: c(t) = d log E‖θ(t) − θ(0)‖²/d log t, 2 at t = 0.
        velocity_correlation: E⟨v(t), v(0)⟩.
    """

    squared: Float[np.ndarray, "*times"]
    exponent: Float[np.ndarray, "*times"]
    velocity_correlation: Float[np.ndarray, "*times"]

    __repr__ = short_repr


@covers_at_rest(
    gives="how far the Langevin equation of SGD goes in a time, and the local exponent",
    exact=False,
    assumes=(SMALL_STEPS,),
)
def langevin_displacement(
    curvature: FiniteNumbers,
    noise: NonNegativeNumbers,
    times: NonNegativeNumbers,
    sgd: SGD,
) -> LangevinDisplacement:
    """E‖Δ‖² = Σ 2B (1 − h(t)), B = ηs/(2S(1 − β)h), over modes, and its slope c(t) = t Σ 2Bω² k(t)/E‖Δ‖².

    h(t) and k(t) are the kernels of `theory.symmetry.damped_kernels` with γ = (1 − β)/(η(1 + β)) and
    ω² = 2(ρ + λ)/(η(1 + β)). Flat modes diffuse: 2s/(S(1 − β²)) [t/2γ − (1 − e^{−2γt})/4γ²]. The velocities are
    Σ s/(S(1 − β²)) (h − 2γk). What steps do is exact in `stationary_displacement`, which this meets as η → 0 at fixed
    t = ηk, and which is larger by the factor 1/(1 − ηh/2(1 + β)) along a mode for long times.

    Costs 100 operations for each mode and time, of different modes one after the other.

    Args:
        curvature: ρ of each mode, one number or a row; with weight decay none below zero.
        noise: s ≥ 0, likewise, the variance over samples of the gradient along each mode.
        times: t ≥ 0, of any shape, in sums of learning rates.
        sgd: η, β, λ, S and N, with η (ρ + λ) < 2(1 + β).

    Raises:
        InputError: A setting out of range, a rate at which steps diverge, or a mode that curves downwards.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, section 6.

    Example:
        >>> sgd = SGD(learning_rate=0.05, momentum=0.9, batch_size=8)
        >>> print(langevin_displacement([2.0, 0.1, 1e-6], 0.7, 1.0, sgd).squared.round(6))
        0.488648
    """
    modes = noisy_steps(curvature, noise, sgd)
    not_upwards(modes)
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
