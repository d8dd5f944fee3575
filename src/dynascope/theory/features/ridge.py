"""The effective ridge κ of kernel regression on a finite number of samples.

Regression on n random samples with the kernel Σ_k ρ_k e_k e_k shrinks mode k of the target to the fraction
ρ_k/(ρ_k + κ), its learnability. The effective ridge κ is the same for all modes.
"""

from __future__ import annotations

import functools
from typing import Annotated, Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Ge
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from dynascope.compilation import AnyArray, float64_jit
from dynascope.theory.domain import covers
from dynascope.theory.kernels import broadcast_known, nan_outside
from dynascope.validation import require, require_broadcast
from dynascope.validation.bounded import NonNegativeArray, PositiveArray

__all__ = [
    "Intensity",
    "RidgeProblem",
    "effective_ridge",
    "learnability",
    "learned_parts",
    "require_fitting",
    "ridge_problem",
    "solve_ridge",
]

_HALVINGS = 64  # bisections of the bracket in ln κ, whose width is at most 1500 in float64
_POLISHING = 3

Intensity: TypeAlias = Annotated[Real[ArrayLike, "... k"], Ge(0)]
_covers = functools.partial(
    covers,
    network="linear model on fixed features, or kernel ridge regression",
    data="random samples, features treated as Gaussian, large n",
    start="zero",
    reference="arXiv:2110.03922",
    exact=False,
)


class RidgeProblem(NamedTuple):
    """A kernel spectrum, a number of samples and a ridge, with compatible shapes; all may be traced by JAX.

    Attributes:
        rho: Eigenvalues (intensities) ρ of the kernel, shape (..., k).
        n: Number of samples.
        delta: Ridge δ.
        m: Multiplicities of the eigenvalues; their shape broadcasts with that of ρ.
    """

    rho: Any
    n: Any
    delta: Any
    m: Any

    def broadcast(self) -> tuple[Array, Array, Array, Array]:
        """Broadcast ρ and m to shape (..., k), and n and δ to shape (...)."""
        batch = jnp.broadcast_shapes(self.rho.shape[:-1], self.n.shape, self.delta.shape, self.m.shape[:-1])
        rho, m = (jnp.broadcast_to(each, (*batch, self.rho.shape[-1])) for each in (self.rho, self.m))
        n, delta = (jnp.broadcast_to(each, batch) for each in (self.n, self.delta))
        return rho, n, delta, m

    def inside(self) -> Array:
        """Whether all values are in range, shape (...)."""
        rho, n, delta, m = self.broadcast()
        modes = jnp.isfinite(rho) & (rho >= 0) & jnp.isfinite(m) & (m >= 0)
        return modes.all(-1) & jnp.isfinite(n) & (n > 0) & jnp.isfinite(delta) & (delta >= 0)


@_covers(gives="effective ridge for a finite number of samples")
def effective_ridge(
    intensity: Intensity,
    samples: PositiveArray,
    *,
    ridge: NonNegativeArray = 0.0,
    multiplicity: NonNegativeArray = 1.0,
) -> Float[AnyArray, ...]:
    """Solve for the effective ridge κ of a spectrum and a number of samples.

        Σ_k m_k ρ_k/(ρ_k + κ) + δ/κ = n

    The left side decreases with κ. Lower bounds for κ are δ/n and (r − n)/Σ_k(m_k/ρ_k), where r = Σ_{ρ_k > 0} m_k; an
    upper bound is (Σ_k m_k ρ_k + δ)/n. Without a ridge and with n ≥ r samples, κ = 0. All arguments broadcast. The
    function can be compiled, and differentiated by the implicit function theorem: ∂κ/∂ρ_k = m_k κ/(ρ_k + κ)² / [Σ_j m_j
    ρ_j/(ρ_j + κ)² + δ/κ²]. At δ = 0 and n = r, the derivative with respect to δ is infinite; the largest number of the
    dtype is returned instead. Inside `jit`, values outside the domain give NaN.

    Args:
        intensity: Eigenvalues ρ_k ≥ 0 of the kernel, shape (..., k), in any order.
        samples: Number of samples n > 0.
        ridge: Ridge δ ≥ 0 in K + δ I. The loss 1/(2n) Σ (·)² + μ/2 ‖w‖² corresponds to δ = n μ.
        multiplicity: Number m_k ≥ 0 of modes with the eigenvalue ρ_k.

    Raises:
        InputError: If a value is not finite or out of range, or the shapes do not broadcast.

    References:
        Simon et al., arXiv:2110.03922; Nam, DPhil thesis (2024), equation 1.35.

    Example:
        >>> with jax.enable_x64(True):
        ...     print(f"{effective_ridge(np.arange(1, 51) ** -1.5, 10):.12f}")
        0.067050287834
    """
    return _effective_ridge(ridge_problem(intensity, samples, ridge, multiplicity))


@_covers(gives="learned fraction of each mode of the target")
def learnability(
    intensity: Intensity,
    samples: PositiveArray,
    *,
    ridge: NonNegativeArray = 0.0,
    multiplicity: NonNegativeArray = 1.0,
) -> Float[AnyArray, "... k"]:
    """Learnability of each mode: the fraction of the mode that is learned from n samples.

        L_k = ρ_k/(ρ_k + κ)

    L_k is near 1 if n samples determine the mode, and near 0 if they contain no information about it. The sum of the
    learnabilities is Σ_k m_k L_k = n − δ/κ, or the number of modes if κ = 0. All arguments broadcast. Inside `jit`,
    values outside the domain give NaN.

    Args:
        intensity: Eigenvalues ρ_k ≥ 0 of the kernel, shape (..., k).
        samples: Number of samples n > 0.
        ridge: Ridge δ ≥ 0.
        multiplicity: Number m_k ≥ 0 of modes with the eigenvalue ρ_k.

    Returns:
        L_k, shape (..., k).

    Raises:
        InputError: If a value is not finite or out of range, or the shapes do not broadcast.

    Example:
        >>> with jax.enable_x64(True):
        ...     print(learnability(np.array([1.0, 0.1, 0.01]), 2).round(3))
        [0.972 0.774 0.255]
    """
    return _learnability(ridge_problem(intensity, samples, ridge, multiplicity))


def ridge_problem(intensity: ArrayLike, samples: ArrayLike, ridge: ArrayLike, multiplicity: ArrayLike) -> RidgeProblem:
    """Validate the shapes of the arguments of `effective_ridge` and return them as a `RidgeProblem`."""
    modes = np.shape(intensity)
    require(
        modes and modes[-1] > 0,
        f"intensity has shape {modes} and contains no mode",
        argument="intensity",
        value=modes,
        remedy="give the intensity of at least one mode along the last dimension",
    )
    require_fitting("multiplicity", multiplicity, modes)
    shapes = {"samples": np.shape(samples), "ridge": np.shape(ridge), "multiplicity": np.shape(multiplicity)[:-1]}
    require_broadcast(intensity=modes[:-1], **shapes)
    n, delta = broadcast_known(samples, ridge)
    return RidgeProblem(intensity, n, delta, multiplicity)


def require_fitting(name: str, values: ArrayLike, modes: tuple[int, ...]) -> None:
    """Raise `InputError` unless there is one value per mode or one for all; `modes` is the shape of `intensity`."""
    shape = np.shape(values)
    try:
        np.broadcast_shapes(shape, modes)
        fits = not shape or shape[-1] in (1, modes[-1])
    except ValueError:
        fits = False
    require(
        fits,
        f"{name} has shape {shape}, but intensity has shape {modes}",
        argument=name,
        value=shape,
        remedy="give one value for all modes, or one per mode",
    )


@float64_jit
def _effective_ridge(problem: RidgeProblem) -> Array:
    return nan_outside(problem.inside(), solve_ridge(*problem.broadcast()))


@float64_jit
def _learnability(problem: RidgeProblem) -> Array:
    rho, *others = problem.broadcast()
    learned, _ = learned_parts(rho, solve_ridge(rho, *others))
    return nan_outside(problem.inside()[..., None], learned)


@jax.custom_jvp
@float64_jit
def solve_ridge(rho: Array, n: Array, delta: Array, m: Array) -> Array:
    """Solve for κ by bisection and Newton steps in ln κ, in units of the upper end of the bracket."""
    unit = (jnp.sum(m * rho, axis=-1) + delta) / n
    unit = jnp.where(unit > 0, unit, 1)
    rho, delta = rho / unit[..., None], delta / unit
    present = rho > 0
    rank = jnp.sum(jnp.where(present, m, 0), axis=-1)
    interpolates = (delta == 0) & (rank <= n)
    slack = jnp.sum(jnp.where(present, m / jnp.where(present, rho, 1), 0), axis=-1)
    lowest = jnp.maximum(delta / n, (rank - n) / jnp.where(slack > 0, slack, 1))
    lowest = jnp.where(interpolates, 1, jnp.clip(lowest, jnp.finfo(rho.dtype).tiny, 1))

    def parts(log_kappa: Array) -> tuple[Array, Array]:
        """Return the left side of the equation for κ minus n, and its negative slope in ln κ.

        For ρ ≥ κ, ρ/(ρ + κ) is evaluated as 1 − κ/(ρ + κ).
        """
        kappa = jnp.exp(log_kappa)[..., None]
        strong = rho >= kappa
        count = jnp.sum(jnp.where(strong, m, 0), axis=-1) - n
        rest = jnp.sum(m * jnp.where(strong, -kappa, rho) / (rho + kappa), axis=-1)
        slope = jnp.sum(m * (rho / (rho + kappa)) * (kappa / (rho + kappa)), axis=-1)
        from_ridge = delta / kappa[..., 0]
        return count + rest + from_ridge, slope + from_ridge

    def halve(_, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = (low + high) / 2
        above = parts(middle)[0] > 0
        return jnp.where(above, middle, low), jnp.where(above, high, middle)

    low, high = jax.lax.fori_loop(0, _HALVINGS, halve, (jnp.log(lowest), jnp.zeros_like(lowest)))
    found = (low + high) / 2
    for _ in range(_POLISHING):
        excess, slope = parts(found)
        # If the slope is lost to rounding, the result of the bisection is kept.
        step = excess / jnp.where(slope > 0, slope, 1)
        found = found + jnp.where((slope > 0) & (jnp.abs(step) < 1e-3), step, 0)
    return jnp.where(interpolates, 0, unit * jnp.exp(found))


@solve_ridge.defjvp
def _solve_ridge_derivative(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    rho, n, delta, m = primals
    kappa = solve_ridge(*primals)
    d_rho, d_n, d_delta, d_m = tangents
    zero = kappa == 0
    safe = jnp.where(zero, 1, kappa)[..., None]
    share, rest = rho / (rho + safe), safe / (rho + safe)
    # κ Σ m ρ/(ρ + κ)² + δ/κ, in which each term is of the order of n.
    slope = jnp.sum(m * share * rest, axis=-1) + delta / safe[..., 0]
    change = jnp.sum(m * rest**2 * d_rho + share * safe * d_m, axis=-1) - safe[..., 0] * d_n + d_delta
    free = n - jnp.sum(jnp.where(rho > 0, m, 0), axis=-1)
    by_ridge = jnp.where(free > 0, 1 / jnp.where(free > 0, free, 1), jnp.finfo(kappa.dtype).max)
    return kappa, jnp.where(zero, 0, change / slope) + jnp.where(zero, by_ridge, 0) * d_delta


def learned_parts(rho: Array, kappa: Array) -> tuple[Array, Array]:
    """Return L = ρ/(ρ + κ) and 1 − L; a mode of intensity zero has L = 0."""
    total = rho + kappa[..., None]
    known = total > 0
    total = jnp.where(known, total, 1)
    return jnp.where(known, rho / total, 0), jnp.where(known, kappa[..., None] / total, 1)
