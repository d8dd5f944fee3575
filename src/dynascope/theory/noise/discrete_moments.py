"""Exact mean and covariance of the weights under SGD at every step, for noise independent of the weights."""

from __future__ import annotations

import numpy as np

from dynascope.theory.noise.langevin_moments import ModeMoments, initial_state
from dynascope.theory.noise.linear_recursion import powers_and_sums, step_matrix, whole_steps
from dynascope.theory.noise.quadratic_loss import covers_modes, noisy_steps
from dynascope.theory.sgd import SGD
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers

__all__ = ["discrete_moments", "discrete_stationary_moments"]


@covers_modes(gives="mean and covariance of the weights and velocity under SGD after any number of steps")
def discrete_moments(
    steps: NonNegativeNumbers,
    sgd: SGD,
    *,
    curvature: FiniteNumbers,
    noise: NonNegativeNumbers,
    position: FiniteNumbers = 0.0,
    velocity: FiniteNumbers = 0.0,
) -> ModeMoments:
    """Mean and covariance of position and velocity under SGD after k steps, exact at any learning rate.

        E z_k = Mᵏ z_0,   Cov z_k = Σ_{j<k} Mʲ N (s/S) Nᵀ Mʲᵀ   of z = (a, b), where
        b ← β b − (ρ + λ) a + ξ,   a ← a + η b,   Var ξ = s/S,   M = [[1 − ηh, ηβ], [−h, β]],   N = (η, 1),   h = ρ + λ.

    The noise must not depend on the weights; for weight-dependent noise, use `finite_data_moments` or
    `gaussian_input_moments`. Powers of M are computed by repeated squaring: a million steps cost twenty products of
    small matrices.

    Args:
        steps: Numbers of steps k ≥ 0, any shape.
        sgd: η, β, λ, S and N, with η (ρ + λ) < 2(1 + β).
        curvature: ρ of each mode, a number or an array of shape (modes,); it may be negative.
        noise: s ≥ 0, the variance of the per-sample gradients along each mode, a number or an array of shape (modes,).
        position: a₀, the initial distance from the centre μ = (H + λ)⁻¹ H θ*, a number or an array of shape (modes,).
        velocity: b₀, the initial velocity (last displacement divided by η), a number or an array of shape (modes,);
            zero for a new optimiser.

    Returns:
        Moments, shape (steps, modes).

    Raises:
        InputError: If a setting is out of range, the steps diverge, or the shapes do not match.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, in discrete time.

    Example:
        >>> found = discrete_moments(2, SGD(0.5, momentum=0.5), curvature=1.0, noise=1.0, position=1.0)
        >>> print(found.position, found.position_variance)
        0.0 0.5
    """
    k = whole_steps("steps", steps)
    chosen = noisy_steps(curvature, noise, sgd)
    chosen.require_stable()
    initial, initial_velocity = initial_state(chosen.curvature, position, velocity)
    with np.errstate(all="ignore"):
        step = step_matrix(chosen.curvature, chosen.rate, chosen.momentum)
        direction = np.array([[chosen.rate**2, chosen.rate], [chosen.rate, 1.0]])
        power, total = powers_and_sums(k.ravel(), step, chosen.noise[..., None, None] * direction)
        mean = (power @ np.stack([initial, initial_velocity], axis=-1)[..., None])[..., 0]
        parts = (mean[..., 0], mean[..., 1], total[..., 0, 0], total[..., 0, 1], total[..., 1, 1])
    shape = k.shape + chosen.curvature.shape
    return ModeMoments(*(np.asarray(part).reshape(shape) for part in parts))


@covers_modes(gives="stationary variances of the weights and velocity under SGD at any stable learning rate")
def discrete_stationary_moments(
    sgd: SGD,
    *,
    curvature: FiniteNumbers,
    noise: NonNegativeNumbers,
) -> ModeMoments:
    """Stationary variances and covariance of position and velocity under SGD, exact at any stable learning rate.

        Var a = ηs(1 + β)/(S h (1 − β)(2(1 + β) − ηh)),   Var b = 2s/(S(1 − β)(2(1 + β) − ηh)),   Cov = η/2 Var b

    The stationary moments are the limits of `discrete_moments` after many steps. The variances in continuous time are
    smaller by the factor 1 − ηh/(2(1 + β)).

    Args:
        sgd: η, β, λ, S and N, with ηh < 2(1 + β).
        curvature: ρ of each mode, a number or an array of shape (modes,), with h = ρ + λ > 0.
        noise: s ≥ 0, the variance of the per-sample gradients along each mode, a number or an array of shape (modes,).

    Returns:
        Moments, shape (modes,), with zero means.

    Raises:
        InputError: If a setting is out of range, the steps diverge, or a mode is flat. The weights diffuse along flat
            modes.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, in discrete time.

    Example:
        >>> found = discrete_stationary_moments(SGD(0.5), curvature=[1.0, 0.5], noise=[1.0, 0.5])
        >>> print(found.position_variance.round(6))
        [0.333333 0.285714]
    """
    chosen = noisy_steps(curvature, noise, sgd)
    chosen.require_stationary()
    with np.errstate(all="ignore"):
        velocity_variance = chosen.step_variance
        position_variance = np.asarray(chosen.rate * (1 + chosen.momentum) / 2 / chosen.curvature * velocity_variance)
    zero = np.zeros(chosen.curvature.shape)
    return ModeMoments(
        zero, zero.copy(), position_variance, np.asarray(chosen.rate / 2 * velocity_variance), velocity_variance
    )
