"""Stationary law of SGD in continuous time: variances, modified loss and phase-space currents."""

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

_STEEP = 0.2  # ηh/(1 + β) above which a warning reports the error of continuous time


@covers_modes(gives="stationary variances of SGD in continuous time", exact=False, assumes=(SMALL_STEPS,))
def langevin_stationary_moments(
    sgd: SGD,
    *,
    curvature: FiniteNumbers,
    noise: NonNegativeNumbers,
) -> ModeMoments:
    """Stationary variances of position and velocity under SGD in continuous time (an Ornstein-Uhlenbeck process).

        Var a = ηs/(2S(1 − β)(ρ + λ)),   Var b = s/(S(1 − β²)),   Cov(a, b) = 0

    For s = σ²ρ and no weight decay, the variance of the weights is equal in all directions. The variances of discrete
    steps (`discrete_stationary_moments`) are larger by the factor 1/(1 − ηh/(2(1 + β))) with h = ρ + λ. If
    ηh > 0.2(1 + β), a warning reports the difference.

    Args:
        sgd: η, β, λ, S and N, with ηh < 2(1 + β).
        curvature: ρ of each mode, a number or an array of shape (modes,), with h = ρ + λ > 0.
        noise: s ≥ 0, the variance of the per-sample gradients along each mode, a number or an array of shape (modes,).

    Returns:
        Moments, shape (modes,), with zero means.

    Raises:
        InputError: If a setting is out of range, the steps diverge, or a mode is flat. The weights diffuse along flat
            modes.

    Warns:
        UserWarning: If the steps are so large that the variances are at least 10 % too low.

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
    zero = np.zeros(chosen.curvature.shape)
    position_variance, velocity_variance = _variances(chosen)
    return ModeMoments(zero, zero.copy(), position_variance, zero.copy(), velocity_variance)


@covers_modes(gives="the ratio of the stationary variances of velocity and weights, at any stable learning rate")
def equipartition_ratio(sgd: SGD, *, curvature: FiniteNumbers) -> Float[np.ndarray, "*modes"]:
    """Ratio of the stationary variances of velocity and position along each mode.

        Var b / Var a = 2(ρ + λ)/(η(1 + β))

    With the mass η(1 + β)/2, the mean kinetic and potential energies of each mode are therefore equal. The ratio is the
    same in continuous time and for discrete steps, and does not depend on the noise.

    Args:
        sgd: η, β and λ, with η (ρ + λ) < 2(1 + β).
        curvature: ρ of each mode, a number or an array of shape (modes,), with ρ + λ > 0.

    Returns:
        The ratio for each mode.

    Raises:
        InputError: If a setting is out of range, a batch size is given, the steps diverge, or a mode is flat.

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
    """Stationary law at the given points of the phase plane (a, b) of each mode.

    Attributes:
        modified_loss: Φ of each mode; the sum over modes takes the place of the training loss.
        inverse_temperature: κ in the density, which is ∝ exp(−κ Φ).
        density: p(a, b) of each mode, normalised to one.
        position_current: b p, the component of the stationary current along a.
        velocity_current: −ω² a p, the component along b.
        frequency: ω, the angular frequency of the circulation in the phase plane, shape (modes,).
    """

    modified_loss: Float[np.ndarray, "*points"]
    inverse_temperature: float
    density: Float[np.ndarray, "*points"]
    position_current: Float[np.ndarray, "*points"]
    velocity_current: Float[np.ndarray, "*points"]
    frequency: Float[np.ndarray, "*modes"]

    __repr__ = short_repr


@covers_modes(
    gives="the modified loss in the stationary density of SGD, and the stationary currents",
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
    """Stationary density of SGD in phase space, with the modified loss and the stationary current.

        p ∝ exp(−κ Φ),   Φ = ½ (ρ + λ)/s a² + ¼ η(1 + β)/s b²,   κ = 2S(1 − β)/η,   current (b, −ω² a) p

    The modified loss Φ takes the place of the training loss in the stationary density. For s = σ²ρ, the curvature of Φ,
    (ρ + λ)/(σ²ρ), is nearly equal in all directions; a further term penalises velocities. The current is
    divergence-free but non-zero: it circulates along ω²a² + b² = constant with ω² = 2(ρ + λ)/(η(1 + β)). For a linear
    regression, σ² Φ is a loss at temperature σ²/κ.

    Args:
        position: a, the distance from the centre μ along each mode, shape (..., modes), or (...) for a single mode.
        velocity: b, the last displacement divided by η, in a shape that broadcasts with `position`.
        sgd: η, β, λ, S and N, with η (ρ + λ) < 2(1 + β).
        curvature: ρ of each mode, a number or an array of shape (modes,), with ρ + λ > 0.
        noise: s > 0, the variance of the per-sample gradients along each mode, a number or an array of shape (modes,).

    Raises:
        InputError: If a setting is out of range, the steps diverge, a mode is flat or noiseless, or the shapes do not
            broadcast.

    Warns:
        UserWarning: If the steps are so large that the variances are at least 10 % too low.

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
        "noise is zero along a mode, so the weights have no stationary density along this mode",
        argument="noise",
        value=least,
        remedy="omit such modes",
    )
    require_broadcast(curvature=chosen.curvature.shape, position=a.shape, velocity=b.shape)
    _warn_of_large_steps(chosen)
    position_variance, velocity_variance = _variances(chosen)
    with np.errstate(all="ignore"):
        kappa = 2 * (1 - chosen.momentum) / (chosen.rate * sgd.noise_share)
        exponent = a / position_variance * a / 2 + b / velocity_variance * b / 2
        density = np.exp(-exponent) / (2 * np.pi * np.sqrt(position_variance) * np.sqrt(velocity_variance))
        square = chosen.squared_frequency
        modified = np.asarray(exponent / kappa)
        along, across = np.asarray(b * density), np.asarray(-square * a * density)
        return StationaryLaw(modified, kappa, np.asarray(density), along, across, np.asarray(np.sqrt(square)))


def _variances(chosen: NoisySteps) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(all="ignore"):
        position_variance = chosen.rate / (2 * (1 - chosen.momentum)) * chosen.noise / chosen.curvature
    return np.asarray(position_variance), chosen.velocity_variance


def _warn_of_large_steps(chosen: NoisySteps) -> None:
    steepest = chosen.rate * float(chosen.curvature.max(initial=0.0))
    if steepest > _STEEP * (1 + chosen.momentum):
        error = steepest / chosen.edge
        warnings.warn(
            f"learning_rate times the largest curvature is {steepest:.3g}, so the continuous-time variances "
            f"are {100 * error:.0f} % lower than those under discrete steps; use discrete_stationary_moments",
            stacklevel=4,
        )
