"""Layers of a λ-balanced two-layer linear network that has learned a map, and their derivatives."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import IsFinite
from jax import Array
from jax.custom_derivatives import SymbolicZero
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from dynascope.compilation import AnyArray, float64_jit
from dynascope.theory.assumptions import BALANCED_LAYERS, ENOUGH_SAMPLES, WHITE_INPUTS
from dynascope.theory.domain import covers
from dynascope.theory.kernels import nan_outside
from dynascope.theory.second_derivatives import once_differentiable
from dynascope.theory.transfer.hidden_rotation import rotation_invariant
from dynascope.theory.transfer.readout import speed_along
from dynascope.validation import is_traced, require, require_known, require_shape
from dynascope.validation.bounded import PositiveInt

__all__ = ["converged_layers"]

_ROUNDING = 400  # rounding errors, in units of ε, of a target computed from data
_UNIQUE = 100  # units of ε by which the last mode kept and the first mode left out must differ
_EQUAL = 1e-6  # relative difference of two ω, up to which their modes count as degenerate


@covers(
    network="two-layer linear, any widths",
    data="whitened inputs, any targets",
    start="λ-balanced, generic",
    gives="the layers after convergence, up to a rotation of the hidden neurons",
    reference="arXiv:2409.14623",
    assumes=(ENOUGH_SAMPLES, WHITE_INPUTS, BALANCED_LAYERS),
)
def converged_layers(
    target_map: IsFinite[Real[ArrayLike, "inputs outputs"]],
    balance: IsFinite[Real[ArrayLike, ""]],
    width: PositiveInt,
) -> tuple[Float[AnyArray, "inputs width"], Float[AnyArray, "width outputs"]]:
    """Compute the layers of a λ-balanced network that has learned a map, from generic initial weights.

    With the singular value decomposition Σ = U diag(s) Vᵀ and ω = √(s² + λ²/4), each of the h strongest modes has the
    first-layer weights u √(ω − λ/2) and the second-layer weights √(ω + λ/2) vᵀ. If there are more hidden neurons than
    modes, the larger layer has the squared singular value |λ| along each additional hidden direction, which does not
    contribute to the map. The layers are determined up to a rotation of the hidden neurons, which affects neither the
    function nor further training.

    Quantities that are invariant under this rotation, such as W₁W₂, W₁W₁ᵀ and the results of `forgetting`, are once
    differentiable with respect to Σ and λ, even at equal singular values. The layers themselves are differentiable with
    respect to λ, and also to Σ if the singular values are distinct. Forward mode (`jax.jvp`) cannot detect that a
    quantity depends on the rotation; its result then refers to one particular rotation.

    Args:
        target_map: Σ, shape (d, c).
        balance: λ in W₂ W₂ᵀ − W₁ᵀ W₁ = λ I.
        width: h; at most c for λ > 0, at most d for λ < 0, any width for λ = 0.

    Returns:
        W₁, shape (d, h), and W₂, shape (h, c).

    Raises:
        InputError: If the width is not possible at this balance; if the last mode kept is as strong as the first mode
            left out (the limit then depends on the initial weights); in reverse mode, if the quantity depends on the
            rotation of modes with equal singular values; or, at λ = 0, if the derivative does not exist. At λ = 0, the
            derivatives with respect to Σ and λ do not exist if a mode of strength zero is kept; the derivative with
            respect to λ also does not exist if there are more hidden neurons than modes. Inside `jit`, impossible
            widths and values that are not finite give NaN; in the other cases, derivatives are NaN.

    References:
        Limit t → ∞ of the solution by Dominé et al., arXiv:2409.14623.

    Example:
        >>> import numpy as np
        >>> first, second = converged_layers(np.diag([2.0, 0.0]), balance=-3.0, width=2)
        >>> (first.T @ first).round(6).tolist(), (first @ second).round(6).tolist()
        ([[4.0, 0.0], [0.0, 3.0]], [[2.0, 0.0], [0.0, 0.0]])
        >>> def input_strength(balance):
        ...     first, _ = converged_layers(np.eye(2), balance, 2)
        ...     return (first**2).sum()
        >>> with jax.enable_x64(True):
        ...     print(f"{jax.grad(input_strength)(0.0):.3f}")
        -1.000
    """
    require_known(width=width)
    require_shape("target_map", target_map, (..., None, None))
    target: Any = target_map
    imbalance: Any = balance
    if is_traced(target) or is_traced(imbalance):
        return _differentiable(target, imbalance, width)
    _require_unique(_strengths(target), float(imbalance), width, target.shape)
    return _layers(target, imbalance, width)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def _differentiable(target_map: Array, balance: Array, width: int) -> tuple[Array, Array]:
    return _layers(target_map, balance, width)


@functools.partial(_differentiable.defjvp, symbolic_zeros=True)
def _(width: int, primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    target_map, balance = primals
    map_dot, balance_dot = (None if isinstance(each, SymbolicZero) else each for each in tangents)
    if not is_traced(target_map) and not is_traced(balance):
        strengths = _strengths(target_map)
        _require_unique(strengths, float(balance), width, target_map.shape)
        _require_smooth(strengths, float(balance), width, map_dot is not None, balance_dot is not None)
    factor, by_map, by_balance, equal = _changes(target_map, balance, map_dot, balance_dot, width)
    if map_dot is not None:
        factor, by_map, by_balance = _rotated(equal, factor, by_map, by_balance)
        by_map = rotation_invariant(by_map, factor, equal)
    return tuple((each[: len(target_map)], each[len(target_map) :].T) for each in (factor, by_map + by_balance))


@functools.partial(float64_jit, static_argnums=2)
def _layers(target_map: Array, balance: Array, width: int) -> tuple[Array, Array]:
    left, strengths, right = _modes(target_map)
    kept = _resized(strengths, width, axis=0)
    first = _resized(left, width, axis=1) * jnp.sqrt(speed_along(kept, balance))
    second = jnp.sqrt(speed_along(kept, -balance))[:, None] * _resized(right, width, axis=0)
    inputs, outputs = target_map.shape
    allowed = (balance == 0) | (width <= jnp.where(balance > 0, outputs, inputs))
    return nan_outside(
        jnp.all(jnp.isfinite(target_map)) & jnp.isfinite(balance) & allowed, (first, second), leading=True
    )


@functools.partial(float64_jit, static_argnums=4)
def _changes(
    target_map: Array, balance: Array, map_dot: Array | None, balance_dot: Array | None, width: int
) -> tuple[Array, Array, Array, Array]:
    """Return Q = (W₁; W₂ᵀ), its derivatives along the map and the balance, and the pairs of degenerate columns.

    The columns √(2ω) v are eigenvectors v of F = [[−λ/2 I, Σ], [Σᵀ, λ/2 I]] with eigenvalues ω. In perturbation theory,
    the derivative of v along another eigenvector is the matrix element of dF divided by the difference of the
    eigenvalues. For two columns of equal ω, only the sum of their mutual changes affects Q Qᵀ; each column receives
    half of the sum.
    """
    target_map = once_differentiable(target_map, "converged_layers", "target_map")
    balance = once_differentiable(balance, "converged_layers", "balance")
    (inputs, outputs), size = target_map.shape, max(target_map.shape)
    left, strengths, right = _modes(target_map)
    # The map is padded to a square; padded modes of the smaller side have zero strength and are never reached.
    sizes = _resized(strengths, size, axis=0)
    inner, outer = jnp.sqrt(speed_along(sizes, balance)), jnp.sqrt(speed_along(sizes, -balance))
    omega = jnp.hypot(sizes, balance / 2)
    length, total = jnp.sqrt(2 * omega), omega[:, None] + omega
    some = length > 0
    # The eigenvectors (α u, β v) with the eigenvalue ω, and (β u, −α v) with −ω.
    alpha, beta = (jnp.where(some, each / jnp.where(some, length, 1), jnp.sqrt(0.5)) for each in (inner, outer))
    index, columns = jnp.arange(size), min(width, size)
    kept = index < columns
    gap = _ratio((sizes - sizes[:, None]) * (sizes + sizes[:, None]), total)
    equal = (jnp.abs(gap) <= _EQUAL * total) & kept[:, None] & kept
    by_map = jnp.zeros((inputs + outputs, size), target_map.dtype)
    if map_dot is not None:
        moved = jnp.zeros((size, size), target_map.dtype).at[:inputs, :outputs].set(left.T @ map_dot @ right.T)
        along = alpha[:, None] * moved * beta + beta[:, None] * moved.T * alpha
        against = beta[:, None] * moved * beta - alpha[:, None] * moved.T * alpha
        along = jnp.where(equal, _ratio(2 * along, length[:, None] + length), _ratio(length * along, gap))
        against = _ratio(length * against, total)
        first = left @ (alpha[:, None] * along + beta[:, None] * against)[:inputs]
        second = right.T @ (beta[:, None] * along - alpha[:, None] * against)[:outputs]
        by_map = jnp.concatenate([first, second])
    basis = [_resized(left, size, axis=1) * -inner, _resized(right.T, size, axis=1) * outer]
    by_balance = _ratio(jnp.concatenate(basis), 4 * omega) * (0.0 if balance_dot is None else balance_dot)
    unbalanced = balance != 0
    widest = jnp.where(unbalanced, jnp.where(balance > 0, outputs, inputs), size)
    last, following = (omega[min(place, size - 1)] for place in (width - 1, width))
    unique = (width >= widest) | (last - following > _UNIQUE * jnp.finfo(omega.dtype).eps * omega[0])
    full = jnp.all(strengths[:width] > 0)
    by_map = nan_outside(unique & (unbalanced | full), by_map, leading=True)
    by_balance = nan_outside(unique & (unbalanced | (full & (width <= len(strengths)))), by_balance, leading=True)
    equal = jnp.pad((equal & ~jnp.eye(size, dtype=bool))[:columns, :columns], (0, width - columns))
    first, second = _layers(target_map, balance, width)
    by_map, by_balance = (_resized(each, width, axis=1) for each in (by_map, by_balance))
    return jnp.concatenate([first, second.T]), by_map, by_balance, equal


@float64_jit
def _rotated(equal: Array, *factors: Array) -> tuple[Array, ...]:
    """Apply a rotation with generic angles to the degenerate columns of the factors.

    At the rotation that the decomposition returns, a quantity that depends on the rotation may be stationary by chance.
    """
    place, identity = jnp.arange(len(equal)), jnp.eye(len(equal))
    angles = jnp.where(equal & (place[:, None] < place), jnp.cos(place[:, None] + 2 * place), 0)
    skew = angles - angles.T
    rotation = jnp.linalg.solve(identity - skew, identity + skew)
    return tuple(each @ rotation for each in factors)


def _modes(target_map: Array) -> tuple[Array, Array, Array]:
    """Return all singular vectors of the map, and its singular values with rounding errors set to zero."""
    left, strengths, right = jnp.linalg.svd(target_map, full_matrices=True)
    # A singular value at the level of rounding errors counts as zero, however small the balance is.
    least = _ROUNDING * jnp.finfo(strengths.dtype).eps * jnp.max(strengths, initial=0)
    return left, jnp.where(strengths > least, strengths, 0), right


def _ratio(one: Array, other: Array) -> Array:
    """Return the quotient, or zero if the denominator is zero."""
    some = other != 0
    return jnp.where(some, one / jnp.where(some, other, 1), 0)


def _resized(values: Array, length: int, *, axis: int) -> Array:
    """Truncate an axis to a length, or pad it with zeros."""
    kept = jnp.moveaxis(values, axis, 0)[:length]
    filled = jnp.zeros((length, *kept.shape[1:]), kept.dtype).at[: len(kept)].set(kept)
    return jnp.moveaxis(filled, 0, axis)


def _require_unique(strengths: np.ndarray, balance: float, width: int, shape: tuple[int, ...]) -> None:
    inputs, outputs = shape
    widest = outputs if balance > 0 else inputs
    require(
        balance == 0 or width <= widest,
        f"width is {width}, which is too large for a balance of {balance:.6g}",
        argument="width",
        value=width,
        remedy=f"choose a width of at most {widest}, the number of {'outputs' if balance > 0 else 'inputs'}",
    )
    unused = widest - len(strengths) if balance else 0
    growth = [*np.hypot(strengths, balance / 2), *([abs(balance) / 2] * unused)]
    rounding = _UNIQUE * float(np.finfo(strengths.dtype).eps) * growth[0]
    unique = width >= len(growth) or growth[width - 1] <= rounding or growth[width - 1] - growth[width] > rounding
    require(
        unique,
        f"for width {width}, the limit depends on the initial weights",
        argument="width",
        value=width,
        remedy="choose a width that separates modes of different strengths, or use the weights of a trained network",
    )


def _require_smooth(strengths: np.ndarray, balance: float, width: int, by_map: bool, by_balance: bool) -> None:
    """Reject derivatives at λ = 0 that do not exist because of modes with zero strength."""
    if balance:
        return
    rank = int(np.sum(strengths > _ROUNDING * np.finfo(strengths.dtype).eps * strengths.max(initial=0)))
    for name, differentiated, limit in (
        ("target_map", by_map, rank if rank < len(strengths) else width),
        ("balance", by_balance, rank),
    ):
        require(
            not differentiated or width <= limit,
            f"at balance 0, the layers are not differentiable with respect to {name} if width is {width} "
            f"and target_map has rank {rank}",
            argument=name,
            value=width,
            remedy="differentiate at another balance, or choose a width of at most the rank",
        )


def _strengths(target_map: Any) -> np.ndarray:
    return np.linalg.svd(np.asarray(target_map, np.float64), compute_uv=False)
