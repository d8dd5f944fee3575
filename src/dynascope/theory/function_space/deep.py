"""Deep linear networks with isotropic gaps W_ℓ₊₁ W_ℓ₊₁ᵀ − W_ℓᵀ W_ℓ = γ_ℓ I between neighbouring layers."""

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
    integrate,
    rank,
    require_integrated,
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


@covers(data="any", gives="the squared singular values of all layers, from those of the map", **_COVERED)
def layer_spectra(singular_value: NonNegativeArray, gaps: _Gaps) -> Float[AnyArray, "*values layers"]:
    """Compute the squared singular values x_ℓ of the layers W_ℓ from one singular value s of W₁ ⋯ W_L.

    With gaps W_ℓ₊₁ W_ℓ₊₁ᵀ − W_ℓᵀ W_ℓ = γ_ℓ I, the singular vectors of neighbouring layers are aligned. The equations
    x_ℓ = x₁ + Σ_{k<ℓ} γ_k ≥ 0 and Π x_ℓ = s² then have a unique solution. If all gaps are zero, x_ℓ = s^(2/L).

    The function can be compiled and differentiated.

    Args:
        singular_value: s ≥ 0, any shape.
        gaps: γ₁, …, γ_{L−1}, shape (L − 1,).

    Returns:
        x_ℓ, shape (..., L), in the units of the gaps.

    Raises:
        InputError: If s < 0, a value is not finite, or `gaps` is not one-dimensional. Inside `jit`, values outside this
            domain give NaN.

    References:
        Kunin et al., arXiv:2406.06158, section 4.

    Example:
        >>> [f"{x:.3f}" for x in layer_spectra(0.8, [0.5, -0.2])]
        ['0.621', '1.121', '0.921']
    """
    require_shape("gaps", gaps, (..., None))
    return _layer_spectra(singular_value, gaps)


@covers(data="any", gives="the rate of an aligned mode", **_COVERED)
def deep_isotropic_rate(singular_value: NonNegativeArray, gaps: _Gaps) -> Float[AnyArray, ...]:
    """Compute the rate at which an aligned mode learns on white inputs.

    ds/dt = (σ − s) Σ_ℓ Π_{k≠ℓ} x_k

    The rate is Σ_ℓ Π_{k≠ℓ} x_k, with x_k from `layer_spectra`. The function can be compiled and differentiated.

    Args:
        singular_value: s ≥ 0, any shape.
        gaps: γ₁, …, γ_{L−1}, shape (L − 1,).

    Returns:
        The rate, with the shape of s.

    Raises:
        InputError: As for `layer_spectra`.

    References:
        Kunin et al., arXiv:2406.06158, section 4.

    Example:
        >>> f"{deep_isotropic_rate(0.8, [0.5, -0.2]):.4f}"
        '2.2979'
    """
    require_shape("gaps", gaps, (..., None))
    return _rate(singular_value, gaps)


@covers(data="any inputs and targets", gives="the linear map of the network and the loss over time", **_COVERED)
def deep_isotropic_flow(
    times: Annotated[Real[ArrayLike, " times"], Ge(0)],
    inputs: Inputs,
    targets: Targets,
    coefficients: IsFinite[Real[ArrayLike, "width width"]],
    gaps: _Gaps,
) -> MapPath:
    """Integrate the map W = W₁ ⋯ W_L = P diag(s) Qᵀ under gradient flow at unit rates.

        W' = −P [K ∘ (Pᵀ G Q)] Qᵀ,  K_ij = Σ_ℓ Π_{k<ℓ} x_k(s_i) Π_{k>ℓ} x_k(s_j),  G = E[x xᵀ] W − E[x yᵀ].

    The relative tolerance of the integration is 1e-10 (1e-5 in single precision). The function can be compiled and
    differentiated, even if singular values are equal or zero.

    Args:
        times: Gradient-flow times t ≥ 0, increasing, shape (times,).
        inputs: X, shape (n, h).
        targets: Y, shape (n, h).
        coefficients: W(0), square, shape (h, h).
        gaps: γ₁, …, γ_{L−1}, shape (L − 1,).

    Returns:
        The map and the loss at the given times.

    Raises:
        InputError: If the map is not square, shapes do not match, a value is not finite, the times do not increase, or
            the equation is too stiff. Inside `jit`, values outside this domain give NaN.

    References:
        Kunin et al., arXiv:2406.06158, section 4; for zero gaps Arora, Cohen, Hazan, arXiv:1802.06509.

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
        f"coefficients has shape {start.shape}, which is not square",
        argument="coefficients",
        value=start.shape,
        remedy="give a square matrix, because all layers have the same width",
    )
    require_shape("gaps", gaps, (..., None))
    samples, t = Samples.checked(inputs, targets, times, start.shape)
    return require_integrated(_flow(start, gaps, samples, t), t)


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
    # If several layers vanish together with a singular value, it stays zero; rounding errors must not let it grow.
    active = jnp.where(jnp.sum(offsets == 0) > 1, rank(start), len(start))
    size = jnp.sqrt(jnp.mean(jax.lax.stop_gradient(start) ** 2))
    size = jax.lax.stop_gradient(jnp.where(size > 0, size, jnp.sqrt(jnp.mean(moments[1] ** 2))))
    valid = samples.valid & jnp.all(jnp.isfinite(start)) & jnp.all(jnp.isfinite(gaps))
    return integrate(_velocity, start, times, (*moments, gaps, active), size, valid)


def _velocity(t: Any, w: Array, arguments: tuple[Array, ...]) -> Array:
    inner, cross, _, gaps, active = arguments
    return -_preconditioned(w, inner @ w - cross, gaps, active)


@jax.custom_jvp
def _preconditioned(w: Array, gradient: Array, gaps: Array, active: Array) -> Array:
    """Return P [K ∘ (Pᵀ G Q)] Qᵀ = Σ_ℓ A_ℓ G B_ℓ, with A_ℓ = P Π_{k<ℓ} x_k Pᵀ and B_ℓ = Q Π_{k>ℓ} x_k Qᵀ."""
    left, sizes, right = jnp.linalg.svd(w)
    sizes = jnp.where(jnp.arange(len(sizes)) < active, sizes, 0)
    before, after = _products(_spectra(sizes, gaps))
    return left @ ((before @ after.T) * (left.T @ gradient @ right.T)) @ right


@_preconditioned.defjvp
def _(primals: tuple[Array, ...], tangents: tuple[Any, ...]) -> tuple[Array, Array]:
    # Singular vectors have no derivative if singular values are equal. The matrix functions A of W Wᵀ and B of Wᵀ W
    # have one, which consists of divided differences of their values.
    w, gradient, gaps, active = primals
    w_dot, gradient_dot, gaps_dot, _ = tangents
    left, sizes, right = jnp.linalg.svd(w)
    sizes = jnp.where(jnp.arange(len(sizes)) < active, sizes, 0)
    spectra = _spectra(sizes, gaps)
    (before, after), (before_dot, after_dot) = jax.jvp(
        lambda gaps: _products(_spectra(sizes, gaps)), (gaps,), (gaps_dot,)
    )
    turned, turned_dot = left.T @ gradient @ right.T, left.T @ gradient_dot @ right.T
    moved = left.T @ w_dot @ right.T
    speed = before @ after.T
    # (x_i − x_j)/(s_i² − s_j²), the same for all layers.
    slope = jnp.where(speed > 0, 1 / jnp.where(speed > 0, speed, 1), 0)
    outer = slope * (moved * sizes + (moved * sizes).T)  # Pᵀ d(W Wᵀ) P
    inner = slope * (moved * sizes[:, None] + (moved * sizes[:, None]).T)  # Qᵀ d(Wᵀ W) Q
    ahead, behind = _differences(spectra), _differences(spectra[:, ::-1])[::-1]
    change = jnp.einsum("lik,kj,jl->ij", ahead * outer, turned, after)
    change += jnp.einsum("il,ik,lkj->ij", before, turned, behind * inner)
    change += (before_dot @ after.T + before @ after_dot.T) * turned + speed * turned_dot
    return left @ (speed * turned) @ right, left @ change @ right


def _differences(spectra: Array) -> Array:
    """Return (p(x_i) − p(x_j))/(x_i − x_j) for the products p = Π_{k<ℓ} x_k at every ℓ, without cancellation."""
    before, _ = _products(spectra)
    found = [jnp.zeros((len(spectra), len(spectra)), spectra.dtype)]
    for layer in range(spectra.shape[1] - 1):
        found.append(found[-1] * spectra[:, layer] + before[:, layer, None])
    return jnp.stack(found)


def _products(spectra: Array) -> tuple[Array, Array]:
    """Return Π_{k<ℓ} x_k and Π_{k>ℓ} x_k for every ℓ."""
    ones = jnp.ones_like(spectra[..., :1])
    before = jnp.cumprod(jnp.concatenate([ones, spectra[..., :-1]], axis=-1), axis=-1)
    after = jnp.cumprod(jnp.concatenate([ones, spectra[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    return before, after


def _spectra(sizes: Array, gaps: Array) -> Array:
    """Return the squared singular values x_ℓ, which differ by known offsets and satisfy Π x_ℓ = s²."""
    offsets = _offsets(gaps)
    return _smallest(sizes, offsets)[..., None] + offsets


@jax.custom_jvp
def _smallest(sizes: Array, offsets: Array) -> Array:
    """Return the smallest x_ℓ by bisection in its logarithm, from bounds that hold for any gaps."""
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
    """Return x_ℓ − min x."""
    offsets = jnp.concatenate([jnp.zeros(1, gaps.dtype), jnp.cumsum(gaps)])
    return offsets - jnp.min(offsets)
