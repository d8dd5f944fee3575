"""How far the two layers of a linear network are from balance."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.arguments import require
from dynascope.theory.modes.growth import real_array

__all__ = ["Balance", "layer_balance"]


class Balance(NamedTuple):
    """The conserved difference of the layers.

    Attributes:
        value: λ, the mean of the eigenvalues of Δ, in units of κ; positive where the second layer is larger.
        error: ‖Δ − λ I‖/(‖U₁‖² + ‖U₂‖²), zero for a λ-balanced network.
    """

    value: Float[Array, ...]
    error: Float[Array, ...]


def layer_balance(
    first: ArrayLike,
    second: ArrayLike,
    *,
    first_rate: ArrayLike = 1.0,
    second_rate: ArrayLike = 1.0,
) -> Balance:
    """λ of the matrix Δ = U₂ U₂ᵀ − U₁ᵀ U₁ that gradient flow conserves, and how far Δ is from λ I.

    For equal rates U₁, U₂ are the layers W₁, W₂; in general U₁ = (η₂/η₁)^¼ W₁, U₂ = (η₁/η₂)^¼ W₂, which follow the flow
    of unit rates in the time κ t, κ = √(η₁ η₂). Exact balance with λ > 0 needs as many outputs as hidden neurons or
    more, with λ < 0 as many inputs.

    Args:
        first: W₁, for f(x) = x W₁ W₂.
        second: W₂.
        first_rate: η₁ > 0.
        second_rate: η₂ > 0.

    Raises:
        InputError: Layers that do not fit together, values that are not finite, or a rate that is not positive.

    References:
        Dominé et al., arXiv:2409.14623.

    Example:
        >>> balance = layer_balance([[1.0, 0.0], [0.0, 2.0]], [[2.0, 0.0], [0.0, 3.0]])
        >>> print(f"{balance.value:.3f} {balance.error:.3f}")
        4.000 0.079
    """
    first, second = layers(first, second)
    first_rate, second_rate = (
        real_array("first_rate", first_rate, above=0),
        real_array("second_rate", second_rate, above=0),
    )
    ratio = jnp.sqrt(first_rate / second_rate)[..., None, None]
    inner = jnp.swapaxes(first, -1, -2) @ first / ratio
    outer = second @ jnp.swapaxes(second, -1, -2) * ratio
    width = first.shape[-1]
    value = jnp.trace(outer - inner, axis1=-2, axis2=-1) / width
    rest = outer - inner - value[..., None, None] * jnp.eye(width, dtype=first.dtype)
    size = jnp.trace(outer + inner, axis1=-2, axis2=-1)
    return Balance(value, jnp.linalg.norm(rest, axis=(-2, -1)) / jnp.where(size > 0, size, 1))


def layers(first: ArrayLike, second: ArrayLike) -> tuple[Array, Array]:
    """Both layers as arrays of matrices that can be multiplied."""
    first, second = real_array("first", first), real_array("second", second)
    for name, layer in (("first", first), ("second", second)):
        require(
            layer.ndim >= 2,
            f"{name} has shape {layer.shape}",
            argument=name,
            value=layer.shape,
            remedy="give a matrix (width in, width out)",
        )
    require(
        first.shape[-1] == second.shape[-2],
        f"the layers have shapes {first.shape} and {second.shape}",
        argument="second",
        value=second.shape,
        remedy="give it as many rows as the first layer has columns",
    )
    dtype = jnp.result_type(first, second)
    return first.astype(dtype), second.astype(dtype)
