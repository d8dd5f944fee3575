"""Mean and covariance of the weights under SGD on a stream of Gaussian samples, with weight-dependent noise."""

from __future__ import annotations

import numpy as np

from dynascope.theory.domain import covers
from dynascope.theory.noise.finite_data import WeightMoments, initial_offset, weight_moments
from dynascope.theory.noise.linear_recursion import moments_step_by_step, whole_steps
from dynascope.theory.noise.lyapunov import symmetric_matrix
from dynascope.theory.noise.quadratic_loss import noisy_steps
from dynascope.theory.sgd import SGD
from dynascope.validation import require, require_array
from dynascope.validation.bounded import FiniteNumbers, NonNegativeFloat, NonNegativeNumbers

__all__ = ["gaussian_input_moments"]


@covers(
    network="linear regression, one output",
    data="a stream of Gaussian inputs, linear targets with label noise",
    start="any",
    gives="mean and covariance of the weights and velocity under SGD with weight-dependent noise",
    reference="arXiv:2107.09133",
)
def gaussian_input_moments(
    steps: NonNegativeNumbers,
    hessian: FiniteNumbers,
    minimum: FiniteNumbers,
    sgd: SGD,
    *,
    label_noise: NonNegativeFloat,
    start: FiniteNumbers | None = None,
    velocity: FiniteNumbers | None = None,
) -> WeightMoments:
    """Exact mean and covariance of the weights under SGD on a stream of fresh Gaussian samples.

        Cov ← M Cov Mᵀ + N Σ̄/S Nᵀ,   Σ̄ = HCH + tr(HC) H + σ² H,   C = E(θ − θ*)(θ − θ*)ᵀ

    The inputs are x ~ N(0, H), and the targets are xᵀθ* plus noise of variance σ²; Σ̄ follows from Isserlis' theorem.
    Without momentum and weight decay, C ← C − η(HC + CH) + η²[(1 + 1/S) HCH + tr(HC) H/S] + η²σ² H/S. The constant
    noise of `discrete_moments` is a good approximation only if tr(HC) = 2 loss − σ² is much smaller than σ².

    Args:
        steps: Numbers of steps k ≥ 0, any shape; the time grows as k d³.
        hessian: H, the covariance of the inputs, shape (d, d), symmetric and positive semi-definite.
        minimum: θ*, shape (d,).
        sgd: η, β, λ and S, with η (ρ + λ) < 2(1 + β) for all eigenvalues ρ of H; N must not be given, because the
            stream is infinite.
        label_noise: σ² ≥ 0, the variance of the label noise.
        start: θ_0, shape (d,); zero by default.
        velocity: v_0, shape (d,); zero by default.

    Raises:
        InputError: If a setting is out of range, the steps diverge, the shapes do not match, or the result overflows
            because the second moment grows.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, without the approximation
        of constant noise.

    Example:
        >>> found = gaussian_input_moments([0, 1], [[1.0]], [1.0], SGD(0.1), label_noise=0.5)
        >>> print(found.loss.round(6))
        [0.75   0.6675]
    """
    require(
        sgd.samples is None,
        f"samples is {sgd.samples}, but the stream of samples is infinite",
        argument="samples",
        value=sgd.samples,
        remedy="omit samples",
    )
    k = whole_steps("steps", steps)
    h = symmetric_matrix("hessian", hessian)
    goal = require_array("minimum", minimum, (len(h),))
    rho, modes = np.linalg.eigh(h)
    rounding = len(h) * np.finfo(float).eps * float(np.abs(rho).max())
    require(
        rho.min() >= -rounding,
        f"hessian has the negative eigenvalue {rho.min():.6g}",
        argument="hessian",
        value=float(rho.min()),
        remedy="give a positive semi-definite matrix",
    )
    chosen = noisy_steps(np.maximum(rho, 0.0), 0.0, sgd)
    chosen.require_stable()
    flat = chosen.curvature <= rounding
    ratios = np.where(flat, 0.0, rho / np.where(flat, 1.0, chosen.curvature))
    centre = modes @ (ratios * (modes.T @ goal))
    offset = centre - goal

    def second_moment(mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
        return spread + np.outer(mean + offset, mean + offset)

    def noise(mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
        second = second_moment(mean, spread)
        return (h @ second @ h + (np.sum(h * second) + label_noise) * h) / sgd.batch_size

    def loss(mean: np.ndarray, spread: np.ndarray) -> float:
        return float(np.sum(h * second_moment(mean, spread)) + label_noise) / 2

    with np.errstate(all="ignore"):
        steep = h + sgd.weight_decay * np.eye(len(h))
        initial = initial_offset(centre, start, velocity)
        found = moments_step_by_step(k.ravel(), steep, initial, chosen.rate, chosen.momentum, noise)
        return weight_moments(*found, centre, loss, k.shape)
