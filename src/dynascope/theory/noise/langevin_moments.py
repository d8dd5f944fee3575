"""Mean and covariance of the weights of SGD in continuous time, from any start to stationarity."""

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

__all__ = ["ModeMoments", "langevin_moments", "start_of"]


class ModeMoments(NamedTuple):
    """Means and covariances along modes, of the shape of the times (or steps) followed by that of the modes.

    Attributes:
        position: E a, of the distance a from the centre μ.
        velocity: E b, of the velocity b, the last displacement over the learning rate.
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
    network="any near a minimum, in its Hessian's eigenvectors",
    data="any, in batches whose noise commutes with the Hessian",
    start="any",
    gives="mean and covariance of weights and velocity of SGD at any time",
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
    """(ā, b̄) = P(t) (a₀, b₀) and Cov = D ∫₀ᵗ (k, k')(k, k')ᵀ of the underdamped Langevin equation of SGD, by modes.

        da = b dt,   db = −2γ b dt − ω² a dt + √D dW,   P = [[h, k], [−ω² k, h − 2γ k]],
        γ = (1 − β)/(η(1 + β)),   ω² = 2(ρ + λ)/(η(1 + β)),   D = 4 s/(η(1 + β)² S),

    with the kernels h, k of `theory.symmetry.damped_kernels`. Where ω > 0 the covariance is B − P B Pᵀ with
    B = diag(η s/(2S(1 − β)(ρ + λ)), s/(S(1 − β²))); it is integrated instead, so that flat modes, which diffuse, and
    early times keep their digits. Exact of the equation; steps at a rate η differ by about η(ρ + λ)/(2(1 + β)), and
    `discrete_moments` has no such error.

    Args:
        times: t = ηk ≥ 0, of any shape.
        sgd: η, β, λ, S and N.
        curvature: ρ of each mode, one number or a row; negative where the loss curves downwards.
        noise: s ≥ 0, likewise, the variance over samples of the gradient along each mode, which is σ²ρ of a linear
            regression.
        position: a₀, one number or one for each mode, the distance from the centre μ = (H + λ)⁻¹ H θ* at the start.
        velocity: b₀, likewise, the last displacement over η at the start.

    Returns:
        Moments of the shape of the times followed by that of the modes.

    Raises:
        InputError: A setting out of range, shapes that do not fit, or an answer too large for a number.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133.

    Example:
        >>> sgd = SGD(learning_rate=0.05, momentum=0.9, weight_decay=0.1, batch_size=8)
        >>> found = langevin_moments(0.83, sgd, curvature=2.0, noise=0.7, position=1.0, velocity=-0.5)
        >>> print(found.position.round(9), found.position_variance.round(9))
        0.254434241 0.008840182
    """
    steps = noisy_steps(curvature, noise, sgd)
    place, push = start_of(steps.curvature, position, velocity)
    clock = np.reshape(times, np.shape(times) + (1,) * steps.curvature.ndim)
    with np.errstate(all="ignore"):
        moved = mode_response(clock, steps.damping, steps.squared_frequency)
        strength = 4 * steps.damping * steps.velocity_variance
        parts = (
            moved.position * place + moved.velocity * push,
            -steps.squared_frequency * moved.velocity * place + moved.slope * push,
            strength * moved.power,
            strength * moved.velocity**2 / 2,
            strength * moved.slope_power,
        )
    return ModeMoments(*map(np.asarray, parts))


def start_of(curvature: np.ndarray, position: ArrayLike, velocity: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The start along each mode, of one number or one for each."""
    found = []
    for name, value in (("position", position), ("velocity", velocity)):
        start = np.asarray(value)
        require(
            start.ndim == 0 or start.shape == curvature.shape,
            f"{name} has shape {start.shape}, and curvature {curvature.shape}",
            argument=name,
            value=start.shape,
            remedy="give one number, or one for each mode",
        )
        found.append(np.broadcast_to(start, curvature.shape))
    return found[0], found[1]
