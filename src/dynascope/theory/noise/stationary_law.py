"""The stationary law of SGD in continuous time: its variances, the loss that it samples, and the currents in it."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import SMALL_STEPS
from dynascope.theory.noise.langevin_moments import ModeMoments
from dynascope.theory.noise.quadratic_loss import NoisySteps, covers_modes, noisy_steps
from dynascope.theory.sgd import SGD
from dynascope.validation import require, require_broadcast
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers, PositiveNumbers

__all__ = ["StationaryLaw", "equipartition_ratio", "langevin_stationary_moments", "stationary_law"]

_STEEP = 0.2  # of (1 + β), the ηh from which continuous time is said to be no law of the steps


@covers_modes(gives="stationary variances of SGD in continuous time", exact=False, assumes=(SMALL_STEPS,))
def langevin_stationary_moments(
    sgd: SGD,
    *,
    curvature: FiniteNumbers,
    noise: NonNegativeNumbers,
) -> ModeMoments:
    """Var a = ηs/(2S(1 − β)(ρ + λ)) and Var b = s/(S(1 − β²)), the Ornstein-Uhlenbeck law that is not correlated.

    With s = σ²ρ and without decay the weights are spread alike in all directions. The variances of steps, by
    `discrete_stationary_moments`, are larger by 1/(1 − ηh/(2(1 + β))) with h = ρ + λ; where ηh > 0.2(1 + β), a warning
    says by how much.

    Args:
        sgd: η, β, λ, S and N, with ηh < 2(1 + β).
        curvature: ρ of each mode, one number or a row, with h = ρ + λ > 0.
        noise: s ≥ 0, likewise, the variance over samples of the gradient along each mode.

    Returns:
        Moments of the shape of the modes, with means of zero.

    Raises:
        InputError: A setting out of range, steps that diverge, or a mode that is flat, along which weights diffuse.

    Warns:
        UserWarning: Steps so large that the law is off by a tenth or more.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133.

    Example:
        >>> found = langevin_stationary_moments(SGD(0.02), curvature=[2.0, 1.0], noise=[0.2, 0.1])
        >>> print(found.position_variance)
        [0.001 0.001]
    """
    chosen = noisy_steps(curvature, noise, sgd)
    chosen.require_stationary()
    _warn_of_large_steps(chosen)
    still = np.zeros(chosen.curvature.shape)
    wide, swift = _variances(chosen)
    return ModeMoments(still, still.copy(), wide, still.copy(), swift)


@covers_modes(gives="the ratio of the stationary variances of velocity and weights, at any stable rate")
def equipartition_ratio(sgd: SGD, *, curvature: FiniteNumbers) -> Float[np.ndarray, "*modes"]:
    """Var b / Var a = 2(ρ + λ)/(η(1 + β)): each mode has as much kinetic as potential energy, with mass η(1 + β)/2.

    The same in continuous time and of steps, whatever the noise is.

    Args:
        sgd: η, β and λ, with η (ρ + λ) < 2(1 + β).
        curvature: ρ of each mode, one number or a row, with ρ + λ > 0.

    Returns:
        One number for each mode.

    Raises:
        InputError: A setting out of range, a batch size, steps that diverge, or a mode that is flat.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133.

    Example:
        >>> print(equipartition_ratio(SGD(0.1, momentum=0.6), curvature=[2.0, 0.5]))
        [25.    6.25]
    """
    sgd.require_without_batches()
    chosen = noisy_steps(curvature, 0.0, sgd)
    chosen.require_stationary()
    return chosen.squared_frequency


class StationaryLaw(NamedTuple):
    """The stationary law at points of the phase planes of modes, of the shape of the points.

    Attributes:
        modified_loss: Φ, whose sum over modes takes the place of the training loss.
        inverse_temperature: κ, the density being ∝ exp(−κ Φ).
        density: p(a, b) of a mode, whose integral is one.
        position_current: b p, the part of the stationary current along a.
        velocity_current: −ω² a p, the part along b.
        frequency: ω at which the current goes round each mode's plane, in radians per time, of the modes' shape.
    """

    modified_loss: Float[np.ndarray, "*points"]
    inverse_temperature: float
    density: Float[np.ndarray, "*points"]
    position_current: Float[np.ndarray, "*points"]
    velocity_current: Float[np.ndarray, "*points"]
    frequency: Float[np.ndarray, "*modes"]

    __repr__ = short_repr


@covers_modes(
    gives="the modified loss that SGD samples, and the currents of its stationary law",
    exact=False,
    assumes=(SMALL_STEPS,),
)
def stationary_law(
    position: FiniteNumbers,
    velocity: FiniteNumbers,
    sgd: SGD,
    *,
    curvature: FiniteNumbers,
    noise: PositiveNumbers,
) -> StationaryLaw:
    """P ∝ exp(−κ Φ) with Φ = ½ (ρ + λ)/s a² + ¼ η(1 + β)/s b² and κ = 2S(1 − β)/η, and its current (b, −ω² a) p.

    SGD samples Φ and not the loss: with s = σ²ρ its curvature (ρ + λ)/(σ²ρ) is nearly the same in all directions, and
    it holds velocities down. Nothing flows out of any place, and yet the current goes round, along ω²a² + b² = constant
    with ω² = 2(ρ + λ)/(η(1 + β)). Of a linear regression σ² Φ is the loss whose temperature is σ²/κ.

    Args:
        position: a, the distance from the centre μ along each mode, shape (..., modes); (...) for a single mode.
        velocity: b, the last displacement over η, of a shape that fits.
        sgd: η, β, λ, S and N, with η (ρ + λ) < 2(1 + β).
        curvature: ρ of each mode, one number or a row, with ρ + λ > 0.
        noise: s > 0, likewise, the variance over samples of the gradient along each mode.

    Raises:
        InputError: A setting out of range, steps that diverge, a flat mode, one without noise, or shapes that do not
            fit.

    Warns:
        UserWarning: Steps so large that the law is off by a tenth or more.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133.

    Example:
        >>> law = stationary_law(0.1, 0.0, SGD(0.02), curvature=2.0, noise=0.2)
        >>> print(law.modified_loss.round(6), law.inverse_temperature, law.velocity_current < 0)
        0.05 100.0 True
    """
    a, b = np.asarray(position), np.asarray(velocity)
    chosen = noisy_steps(curvature, noise, sgd)
    chosen.require_stationary()
    least = float(chosen.noise.min(initial=np.inf))
    require(
        least > 0,
        "noise is zero along a mode, all of whose weights come to rest at one point",
        argument="noise",
        value=least,
        remedy="leave such modes out",
    )
    require_broadcast(curvature=chosen.curvature.shape, position=a.shape, velocity=b.shape)
    _warn_of_large_steps(chosen)
    wide, swift = _variances(chosen)
    with np.errstate(all="ignore"):
        kappa = 2 * (1 - chosen.momentum) / (chosen.rate * sgd.noise_share)
        exponent = a / wide * a / 2 + b / swift * b / 2
        density = np.exp(-exponent) / (2 * np.pi * np.sqrt(wide) * np.sqrt(swift))
        square = chosen.squared_frequency
        modified = np.asarray(exponent / kappa)
        along, across = np.asarray(b * density), np.asarray(-square * a * density)
        return StationaryLaw(modified, kappa, np.asarray(density), along, across, np.asarray(np.sqrt(square)))


def _variances(chosen: NoisySteps) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(all="ignore"):
        wide = chosen.rate / (2 * (1 - chosen.momentum)) * chosen.noise / chosen.curvature
    return np.asarray(wide), chosen.velocity_variance


def _warn_of_large_steps(chosen: NoisySteps) -> None:
    steepest = chosen.rate * float(chosen.curvature.max(initial=0.0))
    if steepest > _STEEP * (1 + chosen.momentum):
        lost = steepest / chosen.edge
        warnings.warn(
            f"learning_rate times the largest curvature is {steepest:.3g}, at which the variances of continuous time "
            f"are {100 * lost:.0f} % lower than those of the steps: use discrete_stationary_moments",
            stacklevel=4,
        )
