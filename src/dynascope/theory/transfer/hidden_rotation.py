"""Gradients through layers that are determined up to a rotation of degenerate hidden modes."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Bool, Float

from dynascope.theory.kernels import nan_outside
from dynascope.validation import is_traced, require

__all__ = ["rotation_invariant"]

_RELATIVE, _ABSOLUTE = 1e-6, 1e-8  # tolerance of a gradient: relative to its size, and absolute


def rotation_invariant(
    change: Float[Array, "*batch size width"],
    factor: Float[Array, "*batch size width"],
    degenerate: Bool[Array, "*batch width width"],
) -> Float[Array, "*batch size width"]:
    """Return the change dQ of a factor Q, and reject gradients that depend on rotations of degenerate columns.

    A function of Q with gradient G is invariant under a rotation that mixes columns i and j if Qᵀ G is symmetric at (i,
    j). Other functions have no derivative if the columns are degenerate.
    """
    return _identity.bind(change, factor, degenerate)


def _first(change: Any, factor: Any, degenerate: Any) -> Any:
    return change


def _transposed(gradient: Any, change: Any, factor: Any, degenerate: Any) -> list[Any]:
    if isinstance(gradient, ad.Zero):
        return [gradient, None, None]
    turned, sizes = (_columns(numbers(factor), numbers(gradient)) for numbers in (jnp.asarray, jnp.abs))
    dependent = jnp.abs(turned - turned.mT) > _RELATIVE * (sizes + sizes.mT) + _ABSOLUTE
    invariant = ~jnp.any(dependent & degenerate, axis=(-2, -1))
    require(
        is_traced(invariant) or bool(np.all(invariant)),
        "target_map has repeated singular values, so the layers are determined only up to a rotation of these modes, "
        "but the differentiated quantity depends on this rotation",
        argument="target_map",
        remedy="differentiate a quantity that is invariant under the rotation, such as first @ second, first @ first.T "
        "or the result of forgetting, or choose a target_map with distinct singular values",
    )
    return [nan_outside(invariant, gradient, leading=True), None, None]


def _columns(factor: Array, gradient: Array) -> Array:
    """Return Qᵀ G."""
    return factor.mT @ gradient


def _derivative(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Any]:
    (_, *known), (change_dot, *_) = primals, tangents
    dot = change_dot if isinstance(change_dot, ad.Zero) else _identity.bind(change_dot, *known)
    return _identity.bind(*primals), dot


def _batched(values: tuple[Any, ...], axes: tuple[int | None, ...]) -> tuple[Any, int]:
    (size,) = {value.shape[axis] for value, axis in zip(values, axes, strict=True) if axis is not None}
    front = (
        jnp.broadcast_to(value, (size, *value.shape)) if axis is None else jnp.moveaxis(value, axis, 0)
        for value, axis in zip(values, axes, strict=True)
    )
    return _identity.bind(*front), 0


# A primitive is needed because `jax.custom_derivatives.linear_call` has no batching rule.
_identity = Primitive("rotation_invariant")
_identity.def_impl(_first)
_identity.def_abstract_eval(_first)
mlir.register_lowering(_identity, mlir.lower_fun(_first, multiple_results=False))
ad.primitive_jvps[_identity] = _derivative
ad.primitive_transposes[_identity] = _transposed
batching.primitive_batchers[_identity] = _batched
