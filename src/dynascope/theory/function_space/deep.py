"""Deep linear networks with isotropic gaps between neighbouring layers."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import jax
import jax.numpy as jnp
from annotated_types import Ge, IsFinite
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from dynascope.compilation import AnyArray, float64_jit
from dynascope.theory.assumptions import BALANCED_LAYERS, EQUAL_WIDTHS
from dynascope.theory.domain import covers
from dynascope.theory.function_space.map_flow import (
    Inputs,
    MapPath,
    Samples,
    Targets,
    finished,
    integrate,
    rank,
)
from dynascope.theory.kernels import nan_outside
from dynascope.validation import require, require_shape
from dynascope.validation.bounded import NonNegativeArray

__all__ = ["deep_isotropic_flow", "deep_isotropic_rate", "layer_spectra"]

_HALVINGS = 80
_COVERED: dict[str, Any] = {
    "network": "deep linear, all widths equal",
    "start": "isotropic gaps W_ℓ₊₁ W_ℓ₊₁ᵀ − W_ℓᵀ W_ℓ = γ_ℓ I",
    "reference": "arXiv:2406.06158",
    "assumes": (EQUAL_WIDTHS, BALANCED_LAYERS),
}

_Gaps: TypeAlias = IsFinite[Real[ArrayLike, " gaps"]]


@covers(data="any", gives="the singular values of all layers, from those of the map", **_COVERED)
def layer_spectra(singular_value: NonNegativeArray, gaps: _Gaps) -> Float[AnyArray, "*values layers"]:
    """x_ℓ, the squares of the singular values of the layers W_ℓ for one singular value s of W₁ ⋯ W_L.

    With gaps W_ℓ₊₁ W_ℓ₊₁ᵀ − W_ℓᵀ W_ℓ = γ_ℓ I the singular vectors of neighbouring layers are aligned, and
    x_ℓ = x₁ + Σ_{k<ℓ} γ_k ≥ 0 with Π x_ℓ = s² has one solution. Without gaps x_ℓ = s^(2/L).

    It can be compiled and differentiated.

    Args:
        singular_value: s ≥ 0, any shape.
        gaps: γ₁, …, γ_{L−1}, shape (L − 1,).

    Returns:
        x_ℓ, shape (..., L), in the units of the gaps.

    Raises:
        InputError: s < 0, values that are not finite, or gaps that are no list. Where JAX traces them, such values give
            NaN.

    References:
        Kunin et al., arXiv:2406.06158, section 4.

    Example:
        >>> [f"{x:.3f}" for x in layer_spectra(0.8, [0.5, -0.2])]
        ['0.621', '1.121', '0.921']
    """
    require_shape("gaps", gaps, (..., None))
    return _layer_spectra(singular_value, gaps)


@covers(data="any", gives="how fast one aligned mode moves", **_COVERED)
def deep_isotropic_rate(singular_value: NonNegativeArray, gaps: _Gaps) -> Float[AnyArray, ...]:
    """Σ_ℓ Π_{k≠ℓ} x_k, the rate of an aligned mode: gradient flow has ds/dt = (σ − s) Σ_ℓ Π_{k≠ℓ} x_k on white inputs.

    It can be compiled and differentiated.

    Args:
        singular_value: s ≥ 0, any shape.
        gaps: γ₁, …, γ_{L−1}, shape (L − 1,).

    Returns:
        The rate, of the shape of s.

    Raises:
        InputError: As `layer_spectra`.

    References:
        Kunin et al., arXiv:2406.06158, section 4.

    Example:
        >>> f"{deep_isotropic_rate(0.8, [0.5, -0.2]):.4f}"
        '2.2979'
    """
    require_shape("gaps", gaps, (..., None))
    return _rate(singular_value, gaps)


@covers(data="any inputs and targets", gives="the function over time", **_COVERED)
def deep_isotropic_flow(
    times: Annotated[Real[ArrayLike, " times"], Ge(0)],
    inputs: Inputs,
    targets: Targets,
    coefficients: IsFinite[Real[ArrayLike, "width width"]],
    gaps: _Gaps,
) -> MapPath:
    """Follow W = W₁ ⋯ W_L = P diag(s) Qᵀ at unit rates, integrated to 1e-10.

    It moves by

        W' = −P [K ∘ (Pᵀ G Q)] Qᵀ,  K_ij = Σ_ℓ Π_{k<ℓ} x_k(s_i) Π_{k>ℓ} x_k(s_j),  G = E[x xᵀ] W − E[x yᵀ].

    It can be compiled and differentiated, also where singular values are equal or zero.

    Args:
        times: Gradient-flow times t ≥ 0, increasing, shape (times,).
        inputs: X, shape (n, h).
        targets: Y, shape (n, h).
        coefficients: W(0), square, shape (h, h).
        gaps: γ₁, …, γ_{L−1}, shape (L − 1,).

    Returns:
        `MapPath`, over the times.

    Raises:
        InputError: A map that is not square, shapes that do not fit, values that are not finite, times that do not
            increase, or an equation too stiff to be integrated. Where JAX traces them, such values give NaN.

    References:
        Kunin et al., arXiv:2406.06158, section 4; without gaps Arora, Cohen, Hazan, arXiv:1802.06509.

    Example:
        >>> import numpy as np
        >>> with jax.enable_x64(True):
        ...     path = deep_isotropic_flow(np.array([0.0, 9.0]), np.ones((1, 1)), np.ones((1, 1)), [[0.5]], [0.0, 0.0])
        ...     print(path.coefficients.ravel().round(4))
        [0.5 1. ]
    """
    start: Any = coefficients
    require_shape("coefficients", start, (..., None, None))
    require(
        start.shape[0] == start.shape[1],
        f"coefficients has shape {start.shape}",
        argument="coefficients",
        value=start.shape,
        remedy="give a square matrix: all widths must be equal",
    )
    require_shape("gaps", gaps, (..., None))
    samples, t = Samples.checked(inputs, targets, times, start.shape)
    return finished(_flow(start, gaps, samples, t), t)


@float64_jit
def _layer_spectra(sizes: Array, gaps: Array) -> Array:
    valid = jnp.isfinite(sizes) & (sizes >= 0) & jnp.all(jnp.isfinite(gaps))
    return nan_outside(valid, _spectra(sizes, gaps.astype(sizes.dtype)), leading=True)


@float64_jit
def _rate(sizes: Array, gaps: Array) -> Array:
    before, after = _products(_layer_spectra(sizes, gaps))
    return jnp.sum(before * after, axis=-1)


@float64_jit
def _flow(start: Array, gaps: Array, samples: Samples, times: Array) -> MapPath:
    gaps, moments = gaps.astype(start.dtype), samples.moments()
    offsets = _offsets(gaps)
    # Where two layers or more would vanish with a singular value, it stays zero, and rounding must not let it grow.
    kept = jnp.where(jnp.sum(offsets == 0) > 1, rank(start), len(start))
    size = jnp.sqrt(jnp.mean(jax.lax.stop_gradient(start) ** 2))
    size = jax.lax.stop_gradient(jnp.where(size > 0, size, jnp.sqrt(jnp.mean(moments[1] ** 2))))
    valid = samples.valid & jnp.all(jnp.isfinite(start)) & jnp.all(jnp.isfinite(gaps))
    return integrate(_velocity, start, times, (*moments, gaps, kept), size, valid)


def _velocity(t: Any, w: Array, arguments: tuple[Array, ...]) -> Array:
    inner, cross, _, gaps, kept = arguments
    return -_preconditioned(w, inner @ w - cross, gaps, kept)


@jax.custom_jvp
def _preconditioned(w: Array, gradient: Array, gaps: Array, kept: Array) -> Array:
    """P [K ∘ (Pᵀ G Q)] Qᵀ = Σ_ℓ A_ℓ G B_ℓ, with A_ℓ = P Π_{k<ℓ} x_k Pᵀ and B_ℓ = Q Π_{k>ℓ} x_k Qᵀ."""
    left, sizes, right = jnp.linalg.svd(w)
    sizes = jnp.where(jnp.arange(len(sizes)) < kept, sizes, 0)
    before, after = _products(_spectra(sizes, gaps))
    return left @ ((before @ after.T) * (left.T @ gradient @ right.T)) @ right


@_preconditioned.defjvp
def _(primals: tuple[Array, ...], tangents: tuple[Any, ...]) -> tuple[Array, Array]:
    # Singular vectors have no derivative where singular values are equal, but the functions A of W Wᵀ and B of Wᵀ W
    # have: that of a function of a matrix is made of the divided differences of its values.
    w, gradient, gaps, kept = primals
    w_dot, gradient_dot, gaps_dot, _ = tangents
    left, sizes, right = jnp.linalg.svd(w)
    sizes = jnp.where(jnp.arange(len(sizes)) < kept, sizes, 0)
    spectra = _spectra(sizes, gaps)
    (before, after), (before_dot, after_dot) = jax.jvp(
        lambda gaps: _products(_spectra(sizes, gaps)), (gaps,), (gaps_dot,)
    )
    turned, turned_dot = left.T @ gradient @ right.T, left.T @ gradient_dot @ right.T
    moved = left.T @ w_dot @ right.T
    speed = before @ after.T
    slope = jnp.where(speed > 0, 1 / jnp.where(speed > 0, speed, 1), 0)  # (x_i − x_j)/(s_i² − s_j²), the same for all x
    outer = slope * (moved * sizes + (moved * sizes).T)  # Pᵀ d(W Wᵀ) P
    inner = slope * (moved * sizes[:, None] + (moved * sizes[:, None]).T)  # Qᵀ d(Wᵀ W) Q
    ahead, behind = _differences(spectra), _differences(spectra[:, ::-1])[::-1]
    change = jnp.einsum("lik,kj,jl->ij", ahead * outer, turned, after)
    change += jnp.einsum("il,ik,lkj->ij", before, turned, behind * inner)
    change += (before_dot @ after.T + before @ after_dot.T) * turned + speed * turned_dot
    return left @ (speed * turned) @ right, left @ change @ right


def _differences(spectra: Array) -> Array:
    """(p(x_i) − p(x_j))/(x_i − x_j) of the products p = Π_{k<ℓ} x_k for every ℓ, without differences."""
    before, _ = _products(spectra)
    found = [jnp.zeros((len(spectra), len(spectra)), spectra.dtype)]
    for layer in range(spectra.shape[1] - 1):
        found.append(found[-1] * spectra[:, layer] + before[:, layer, None])
    return jnp.stack(found)


def _products(spectra: Array) -> tuple[Array, Array]:
    """Π_{k<ℓ} x_k and Π_{k>ℓ} x_k for every ℓ."""
    ones = jnp.ones_like(spectra[..., :1])
    before = jnp.cumprod(jnp.concatenate([ones, spectra[..., :-1]], axis=-1), axis=-1)
    after = jnp.cumprod(jnp.concatenate([ones, spectra[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    return before, after


def _spectra(sizes: Array, gaps: Array) -> Array:
    """x_ℓ, of which the smallest solves Π x_ℓ = s²."""
    offsets = _offsets(gaps)
    return _smallest(sizes, offsets)[..., None] + offsets


@jax.custom_jvp
def _smallest(sizes: Array, offsets: Array) -> Array:
    """By bisection in the logarithm of the smallest x, from bounds that hold for any gaps."""
    depth = len(offsets)
    present = sizes > 0
    goal = 2 * jnp.log(jnp.where(present, sizes, 1.0))
    upper = goal / depth
    lower = goal - (depth - 1) * jnp.log(jnp.exp(upper) + jnp.max(offsets))

    def halve(_: Any, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) / 2
        above = jnp.sum(jnp.log(jnp.exp(middle)[..., None] + offsets), axis=-1) > goal
        return jnp.where(above, low, middle), jnp.where(above, middle, high)

    low, high = jax.lax.fori_loop(0, _HALVINGS, halve, (lower, upper))
    return jnp.where(present, jnp.exp((low + high) / 2), 0.0)


@_smallest.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Any, Any]) -> tuple[Array, Array]:
    # d Π x_ℓ = Σ_ℓ Π_{k≠ℓ} x_k dx_ℓ = 2 s ds.
    (sizes, offsets), (sizes_dot, offsets_dot) = primals, tangents
    smallest = _smallest(sizes, offsets)
    before, after = _products(smallest[..., None] + offsets)
    each = before * after
    rate = jnp.sum(each, axis=-1)
    moves = rate > 0
    change = 2 * sizes * sizes_dot - jnp.sum(each * offsets_dot, axis=-1)
    return smallest, jnp.where(moves, change / jnp.where(moves, rate, 1), 0.0)


def _offsets(gaps: Array) -> Array:
    """x_ℓ − min x."""
    offsets = jnp.concatenate([jnp.zeros(1, gaps.dtype), jnp.cumsum(gaps)])
    return offsets - jnp.min(offsets)
