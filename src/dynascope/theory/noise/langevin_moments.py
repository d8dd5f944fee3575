"""Mean and covariance of the weights under SGD in continuous time, from the initial weights to the stationary state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import SMALL_STEPS
from dynascope.theory.domain import covers
from dynascope.theory.noise.quadratic_loss import noisy_steps
from dynascope.theory.sgd import SGD
from dynascope.theory.symmetry.kernels import mode_response
from dynascope.validation import require
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers

__all__ = ["ModeMoments", "initial_state", "langevin_moments"]


class ModeMoments(NamedTuple):
    """Means and covariances along modes, shape (times, modes) or (steps, modes).

    Attributes:
        position: E a, the mean distance from the centre μ.
        velocity: E b, the mean velocity, with b the last displacement divided by the learning rate.
        position_variance: Var a.
        covariance: Cov(a, b).
        velocity_variance: Var b.
    """

    position: Float[np.ndarray, "*shape"]
    velocity: Float[np.ndarray, "*shape"]
    position_variance: Float[np.ndarray, "*shape"]
    covariance: Float[np.ndarray, "*shape"]
    velocity_variance: Float[np.ndarray, "*shape"]

    __repr__ = short_repr


@covers(
    network="any, near a minimum, along the eigenvectors of the Hessian",
    data="any, with batch noise that commutes with the Hessian",
    start="any",
    gives="mean and covariance of the weights and velocity under SGD at any time",
    reference="arXiv:2107.09133",
    exact=False,
    assumes=(SMALL_STEPS,),
)
def langevin_moments(
    times: NonNegativeNumbers,
    sgd: SGD,
    *,
    curvature: FiniteNumbers,
    noise: NonNegativeNumbers,
    position: FiniteNumbers = 0.0,
    velocity: FiniteNumbers = 0.0,
) -> ModeMoments:
    """Mean and covariance of position and velocity in the underdamped Langevin equation of SGD, mode by mode.

        da = b dt,   db = −2γ b dt − ω² a dt + √D dW,   P = [[h, k], [−ω² k, h − 2γ k]],
        γ = (1 − β)/(η(1 + β)),   ω² = 2(ρ + λ)/(η(1 + β)),   D = 4 s/(η(1 + β)² S),
        (ā, b̄) = P(t) (a₀, b₀),   Cov = D ∫₀ᵗ (k, k')(k, k')ᵀ

    `theory.symmetry.damped_kernels` computes the kernels h and k. For ω > 0 the covariance equals B − P B Pᵀ with
    B = diag(η s/(2S(1 − β)(ρ + λ)), s/(S(1 − β²))). The function evaluates the integral instead, which is also accurate
    at early times and for flat modes. The moments solve the equation exactly. The steps of SGD deviate from the
    equation by a relative error of about η(ρ + λ)/(2(1 + β)); for exact moments of the steps, use `discrete_moments`.

    Args:
        times: t = ηk ≥ 0, any shape.
        sgd: η, β, λ, S and N.
        curvature: ρ of each mode, a number or an array of shape (modes,); it may be negative.
        noise: s ≥ 0, the variance of the per-sample gradients along each mode, a number or an array of shape (modes,);
            σ²ρ for linear regression with label noise of variance σ².
        position: a₀, the initial distance from the centre μ = (H + λ)⁻¹ H θ*, a number or an array of shape (modes,).
        velocity: b₀, the initial velocity (last displacement divided by η), a number or an array of shape (modes,).

    Returns:
        Moments, shape (times, modes).

    Raises:
        InputError: If a setting is out of range, the shapes do not match, or the result overflows.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133.

    Example:
        >>> sgd = SGD(learning_rate=0.05, momentum=0.9, weight_decay=0.1, batch_size=8)
        >>> found = langevin_moments(0.83, sgd, curvature=2.0, noise=0.7, position=1.0, velocity=-0.5)
        >>> print(found.position.round(9), found.position_variance.round(9))
        0.254434241 0.008840182
    """
    steps = noisy_steps(curvature, noise, sgd)
    initial, initial_velocity = initial_state(steps.curvature, position, velocity)
    clock = np.reshape(times, np.shape(times) + (1,) * steps.curvature.ndim)
    with np.errstate(all="ignore"):
        moved = mode_response(clock, steps.damping, steps.squared_frequency)
        strength = 4 * steps.damping * steps.velocity_variance
        parts = (
            moved.position * initial + moved.velocity * initial_velocity,
            -steps.squared_frequency * moved.velocity * initial + moved.slope * initial_velocity,
            strength * moved.power,
            strength * moved.velocity**2 / 2,
            strength * moved.slope_power,
        )
    return ModeMoments(*map(np.asarray, parts))


def initial_state(curvature: np.ndarray, position: ArrayLike, velocity: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Expand the initial position and velocity to one number per mode."""
    found = []
    for name, value in (("position", position), ("velocity", velocity)):
        start = np.asarray(value)
        require(
            start.ndim == 0 or start.shape == curvature.shape,
            f"{name} has shape {start.shape}, but curvature has shape {curvature.shape}",
            argument=name,
            value=start.shape,
            remedy="give one number, or one per mode",
        )
        found.append(np.broadcast_to(start, curvature.shape))
    return found[0], found[1]
