"""Mean and covariance of the weights of SGD after every number of steps, exactly, for noise that is always alike."""

from __future__ import annotations

import numpy as np

from dynascope.theory.noise.langevin_moments import ModeMoments, start_of
from dynascope.theory.noise.linear_recursion import powers_and_sums, step_matrix, whole_steps
from dynascope.theory.noise.quadratic_loss import covers_modes, noisy_steps
from dynascope.theory.sgd import SGD
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers

__all__ = ["discrete_moments", "discrete_stationary_moments"]


@covers_modes(gives="mean and covariance of weights and velocity of SGD after any number of steps")
def discrete_moments(
    steps: NonNegativeNumbers,
    sgd: SGD,
    *,
    curvature: FiniteNumbers,
    noise: NonNegativeNumbers,
    position: FiniteNumbers = 0.0,
    velocity: FiniteNumbers = 0.0,
) -> ModeMoments:
    """E z_k = Mᵏ z_0 and Cov z_k = Σ_{j<k} Mʲ N (s/S) Nᵀ Mʲᵀ of z = (a, b), with no error of small steps.

        b ← β b − (ρ + λ) a + ξ,   a ← a + η b,   Var ξ = s/S,   M = [[1 − ηh, ηβ], [−h, β]],   N = (η, 1),   h = ρ + λ.

    Exact for noise that does not depend on the weights; `finite_data_moments` and `gaussian_input_moments` have noise
    that does. The steps are doubled, and so a million costs twenty products of small matrices.

    Args:
        steps: Numbers k ≥ 0 of steps, of any shape.
        sgd: η, β, λ, S and N, with η (ρ + λ) < 2(1 + β).
        curvature: ρ of each mode, one number or a row; negative where the loss curves downwards.
        noise: s ≥ 0, likewise, the variance over samples of the gradient along each mode.
        position: a₀, one number or one for each mode, the distance from the centre μ = (H + λ)⁻¹ H θ* at the start.
        velocity: b₀, likewise, the last displacement over η at the start, zero of an optimiser that has made no step.

    Returns:
        Moments of the shape of the steps followed by that of the modes.

    Raises:
        InputError: A setting out of range, steps that diverge, or shapes that do not fit.

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
    place, push = start_of(chosen.curvature, position, velocity)
    with np.errstate(all="ignore"):
        step = step_matrix(chosen.curvature, chosen.rate, chosen.momentum)
        pushed = np.array([[chosen.rate**2, chosen.rate], [chosen.rate, 1.0]])
        power, total = powers_and_sums(k.ravel(), step, chosen.noise[..., None, None] * pushed)
        mean = (power @ np.stack([place, push], axis=-1)[..., None])[..., 0]
        parts = (mean[..., 0], mean[..., 1], total[..., 0, 0], total[..., 0, 1], total[..., 1, 1])
    shape = k.shape + chosen.curvature.shape
    return ModeMoments(*(np.asarray(part).reshape(shape) for part in parts))


@covers_modes(gives="stationary variances of weights and velocity of SGD at any stable rate")
def discrete_stationary_moments(
    sgd: SGD,
    *,
    curvature: FiniteNumbers,
    noise: NonNegativeNumbers,
) -> ModeMoments:
    """Var a = ηs(1 + β)/(S h (1 − β)(2(1 + β) − ηh)), Var b = 2s/(S(1 − β)(2(1 + β) − ηh)), Cov = η/2 Var b.

    What `discrete_moments` tend to after many steps. The variances in continuous time are less by the factor 1 −
    ηh/(2(1 + β)).

    Args:
        sgd: η, β, λ, S and N, with ηh < 2(1 + β).
        curvature: ρ of each mode, one number or a row, with h = ρ + λ > 0.
        noise: s ≥ 0, likewise, the variance over samples of the gradient along each mode.

    Returns:
        Moments of the shape of the modes, with means of zero.

    Raises:
        InputError: A setting out of range, steps that diverge, or a mode that is flat, along which weights diffuse.

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
        swift = chosen.step_variance
        wide = np.asarray(chosen.rate * (1 + chosen.momentum) / 2 / chosen.curvature * swift)
    still = np.zeros(chosen.curvature.shape)
    return ModeMoments(still, still.copy(), wide, np.asarray(chosen.rate / 2 * swift), swift)
