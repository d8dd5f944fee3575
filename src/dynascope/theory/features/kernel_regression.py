"""Generalisation error of kernel regression on n samples, and the learned fraction of each mode of the target.

Ridge regression with the kernel K = Σ_k ρ_k e_k e_k learns the fraction L_k = ρ_k/(ρ_k + κ) of mode k of the target.
Without a ridge, its solution is the limit of gradient flow on a linear model with the features √ρ_k e_k.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from annotated_types import IsFinite
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.theory.features.ridge import (
    Intensity,
    RidgeProblem,
    learned_parts,
    require_fitting,
    ridge_problem,
    solve_ridge,
)
from dynascope.theory.kernels import all_finite, broadcast_known, nan_outside
from dynascope.validation import require_broadcast
from dynascope.validation.bounded import NonNegativeArray, PositiveArray

__all__ = ["KernelRegression", "kernel_regression_error"]

_NEAR_THRESHOLD = 10.0  # overfitting coefficient above which individual training sets scatter widely around the mean


class KernelRegression(NamedTuple):
    """Learned coefficients and errors of kernel regression, averaged over random draws of the n samples.

    The target f* has the coefficients v_k = ⟨e_k|f*⟩, and m_k modes share the eigenvalue ρ_k of the kernel.

    Attributes:
        effective_ridge: Effective ridge κ, shape (...).
        learnability: L_k = ρ_k/(ρ_k + κ), the mean learned coefficient divided by v_k, shape (..., k).
        overfitting_coefficient: E₀ = n/(n − Σ_k m_k L_k²), the factor by which finite sampling
            increases the error, shape (...).
        noisy_mse: E(f̂ − y)² on new samples with label noise, shape (...).
        clean_mse: E(f̂ − f*)² = noisy_mse − σ², shape (...).
        training_mse: Mean of (f̂(x_j) − y_j)² over the training samples, shape (...).
        coefficient_mean: E⟨e_k|f̂⟩ = L_k v_k, shape (..., k).
        coefficient_variance: Var⟨e_k|f̂⟩ = L_k² noisy_mse/n of each individual mode, shape (..., k).
    """

    effective_ridge: Float[AnyArray, ...]
    learnability: Float[AnyArray, "... k"]
    overfitting_coefficient: Float[AnyArray, ...]
    noisy_mse: Float[AnyArray, ...]
    clean_mse: Float[AnyArray, ...]
    training_mse: Float[AnyArray, ...]
    coefficient_mean: Float[AnyArray, "... k"]
    coefficient_variance: Float[AnyArray, "... k"]

    __repr__ = short_repr

    @property
    def test_loss(self) -> Float[AnyArray, ...]:
        """Loss L = ½ E(f̂ − f*)²."""
        return self.clean_mse / 2

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons why individual training runs may differ from the averages, one sentence each."""
        coefficient = np.asarray(self.overfitting_coefficient)
        if np.any(np.isinf(coefficient)):
            return (
                "The number of samples equals the number of modes, and there is no ridge: noise of any variance makes "
                "the mean error infinite.",
            )
        if np.any(coefficient > _NEAR_THRESHOLD):
            return (
                "The number of samples is close to the number of modes that can fit them: individual training "
                f"sets scatter widely around the mean (overfitting coefficient {np.max(coefficient):.3g}).",
            )
        return ()


@covers(
    network="linear model on fixed features, or kernel ridge regression",
    data="random samples with noise, features treated as Gaussian, large n",
    start="zero",
    gives="test and training error, mean and variance of each learned coefficient",
    reference="arXiv:2110.03922",
    exact=False,
    infinite=True,
)
def kernel_regression_error(
    intensity: Intensity,
    coefficients: IsFinite[Real[ArrayLike, "... k"]],
    samples: PositiveArray,
    *,
    ridge: NonNegativeArray = 0.0,
    noise_variance: NonNegativeArray = 0.0,
    unreachable_power: NonNegativeArray = 0.0,
    multiplicity: NonNegativeArray = 1.0,
) -> KernelRegression:
    """Mean errors of kernel regression f̂ = K(·, X)(K(X, X) + δ I)⁻¹ y for noisy labels y = f* + ε.

    With κ from `effective_ridge`, L_k = ρ_k/(ρ_k + κ) and E₀ = n/(n − Σ_k m_k L_k²), the means over samples and noise
    are

        noisy mse = E₀ [Σ_k (1 − L_k)² v_k² + ‖f⊥‖² + σ²],    training mse = (δ/(n κ))² · noisy mse.

    The part f⊥ of the target outside the span of the modes, and modes with eigenvalue zero, cannot be learned and act
    as noise. If κ = 0 (no ridge, n ≥ rank r), the limits of the formulas are returned: for a target in the span,
    E₀ = n/(n − r), clean mse = σ² r/(n − r) and training mse = σ² (1 − r/n). For n = r, the errors are infinite with
    noise and zero without noise.

    All arguments broadcast, so an array of `samples` with one spectrum yields a learning curve. The function can be
    compiled, and differentiated with respect to all arguments. Inside `jit`, values outside the domain give NaN.

    Args:
        intensity: Eigenvalues ρ_k ≥ 0 of the kernel, shape (..., k).
        coefficients: v_k = ⟨e_k|f*⟩, shape (..., k); for m_k modes with the same ρ_k, √Σ v² over these modes.
        samples: Number of samples n > 0.
        ridge: Ridge δ ≥ 0.
        noise_variance: Variance σ² ≥ 0 of the label noise.
        unreachable_power: Power ‖f⊥‖² ≥ 0 of the target outside the span of the modes.
        multiplicity: Number m_k ≥ 0 of modes with the eigenvalue ρ_k.

    Returns:
        A `KernelRegression`. The theory is asymptotic in n and treats the eigenfeatures as Gaussian. In one-dimensional
        bases, nearly coincident samples cause heavy tails, so compare medians.

    Raises:
        InputError: If a value is not finite or out of range, or the shapes do not broadcast.

    References:
        Simon et al., arXiv:2110.03922, equations 1, 6 to 8 and 13; Nam, DPhil thesis (2024), equation 1.35.

    Example:
        >>> import jax
        >>> with jax.enable_x64(True):
        ...     found = kernel_regression_error(np.arange(1, 51) ** -1.5, np.eye(50)[0], 10, noise_variance=0.1)
        ...     print(f"{found.coefficient_mean[0]:.6f} {found.clean_mse:.6f}")
        0.937163 0.083858
    """
    problem = ridge_problem(intensity, samples, ridge, multiplicity)
    modes = np.shape(intensity)
    require_fitting("coefficients", coefficients, modes)
    require_broadcast(
        samples=np.broadcast_shapes(np.shape(problem.n), np.shape(ridge), modes[:-1], np.shape(multiplicity)[:-1]),
        coefficients=np.shape(coefficients)[:-1],
        noise_variance=np.shape(noise_variance),
        unreachable_power=np.shape(unreachable_power),
    )
    n, delta, noise, outside = broadcast_known(problem.n, problem.delta, noise_variance, unreachable_power)
    return _errors(problem._replace(n=n, delta=delta), coefficients, noise, outside)


@float64_jit
def _errors(problem: RidgeProblem, v: Array, noise: Array, outside: Array) -> KernelRegression:
    dtype = jnp.result_type(problem.rho, v, noise, outside)
    rho, n, delta, m = (each.astype(dtype) for each in problem.broadcast())
    v, noise, outside = (each.astype(dtype) for each in (v, noise, outside))
    fits = problem.inside()
    known = fits & jnp.isfinite(jnp.atleast_1d(v)).all(-1)
    valid = known & all_finite(noise, outside) & (noise >= 0) & (outside >= 0)
    kappa = solve_ridge(rho, n, delta, m)
    learned, missed = learned_parts(rho, kappa)
    zero = kappa == 0
    # n − Σ m L = δ/κ, the degrees of freedom that the ridge leaves unfitted.
    unfitted = jnp.where(zero, n - jnp.sum(m * learned, axis=-1), delta / jnp.where(zero, 1, kappa))
    spread = jnp.sum(m * learned**2, axis=-1)
    # n − Σ m L² without cancellation.
    free = jnp.sum(m * learned * missed, axis=-1) + unfitted
    singular = free <= 0
    free = jnp.where(singular, 1, free)
    bias = jnp.sum((missed * v) ** 2, axis=-1) + outside
    infinite = jnp.asarray(math.inf, rho.dtype)

    def unless_singular(value: Array, cause: Array) -> Array:
        return jnp.where(singular, jnp.where(cause > 0, infinite, 0), value)

    noisy = unless_singular(n / free * (bias + noise), bias + noise)
    variance = learned**2 * (noisy / n)[..., None]
    return KernelRegression(
        effective_ridge=nan_outside(fits, kappa),
        learnability=nan_outside(fits[..., None], learned),
        overfitting_coefficient=nan_outside(fits, jnp.where(singular, infinite, n / free)),
        noisy_mse=nan_outside(valid, noisy),
        clean_mse=nan_outside(valid, unless_singular(n / free * bias + spread / free * noise, bias + noise)),
        training_mse=nan_outside(valid, jnp.where(singular, 0, unfitted**2 / (n * free) * (bias + noise))),
        coefficient_mean=nan_outside(known[..., None], learned * v),
        coefficient_variance=nan_outside(valid[..., None], jnp.where(learned > 0, variance, 0)),
    )
