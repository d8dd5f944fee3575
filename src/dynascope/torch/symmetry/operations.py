"""PyTorch (ATen) operations as JAX functions: arithmetic, comparisons and reductions."""
# pyright: reportMissingImports=false

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import torch

from dynascope.torch.symmetry.arrangements import ARRANGEMENTS
from dynascope.torch.symmetry.layers import LAYERS

__all__ = ["OPERATIONS"]

_Axes = int | Sequence[int] | None


def _scaled(operation: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda x, y, *, alpha=1: operation(x, y if alpha == 1 else alpha * y)


def _divided(x: Any, y: Any, *, rounding_mode: str | None = None) -> Any:
    if rounding_mode is None:
        return jnp.true_divide(x, y)
    if rounding_mode == "floor":
        return jnp.floor_divide(x, y)
    return jnp.trunc(jnp.true_divide(x, y)).astype(jnp.result_type(x, y))


def _power(x: Any, exponent: Any) -> Any:
    # An integer exponent has a gradient at zero and a known degree.
    whole = isinstance(exponent, int | float) and float(exponent).is_integer()
    return x ** int(exponent) if whole else jnp.power(x, exponent)


def _converted(x: Any, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    """Convert the type of an array; floating-point arrays keep the precision of the computation."""
    if dtype is None or (dtype.is_floating_point and jnp.issubdtype(jnp.result_type(x), jnp.floating)):
        return x
    if dtype.is_floating_point:
        return jnp.asarray(x, float)
    return jnp.asarray(x, {torch.bool: bool}.get(dtype, int))


def _total(
    operation: Callable[..., Any], x: Any, axes: _Axes = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    return operation(_converted(x, dtype=dtype), axis=_axes(axes), keepdims=keepdim)


def _with_place(operation: Callable[..., Any], place: Callable[..., Any]) -> Callable[..., Any]:
    def both(x: Any, axis: int, keepdim: bool = False) -> Any:
        return operation(x, axis=axis, keepdims=keepdim), place(x, axis=axis, keepdims=keepdim)

    return both


def _variance(x: Any, axes: _Axes = None, *, correction: float | None = 1, keepdim: bool = False) -> Any:
    return jnp.var(x, axis=_axes(axes), keepdims=keepdim, ddof=1 if correction is None else int(correction))


def _variance_and_mean(x: Any, axes: _Axes = None, *, correction: float | None = 1, keepdim: bool = False) -> Any:
    mean = jnp.mean(x, axis=_axes(axes), keepdims=keepdim)
    return _variance(x, axes, correction=correction, keepdim=keepdim), mean


def _norm(x: Any, order: Any = 2, axes: _Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return jnp.linalg.vector_norm(_converted(x, dtype=dtype), axis=_axes(axes), keepdims=keepdim, ord=order)


def _elu(x: Any, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    negative = alpha * jnp.expm1(jnp.where(x > 0, 0.0, x) * input_scale)
    return scale * jnp.where(x > 0, x, negative)


def _product_and_sum(total: Any, x: Any, y: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    product = x @ y if alpha == 1 else alpha * (x @ y)
    return product if beta == 0 else (total if beta == 1 else beta * total) + product


def _axes(axes: _Axes) -> int | tuple[int, ...] | None:
    """Return the axes of a reduction; None and an empty list stand for all axes."""
    return axes if isinstance(axes, int | None) else tuple(axes) or None


def _trilinear(x: Any, y: Any, z: Any, of_x: Any, of_y: Any, of_z: Any, gone: Sequence[int], _: int = 1) -> Any:
    """Return the sum over some axes of a product of three factors, after inserting the axes that each factor lacks."""
    x, y, z = (jnp.expand_dims(each, tuple(axes)) for each, axes in ((x, of_x), (y, of_y), (z, of_z)))
    return jnp.sum(x * y * z, tuple(gone))


# Operations with the same name in PyTorch and JAX, and with different names.
_SAME_NAME = ["abs", "ceil", "cos", "cosh", "exp", "expm1", "exp2", "floor", "isinf", "isnan", "log", "log10", "log1p"]
_SAME_NAME += ["log2", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "fmax", "fmin"]
_SAME_NAME += [
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "round",
    "remainder",
    "fmod",
    "reciprocal",
    "hypot",
]
_SAME_NAME += ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"]
_OTHER_NAME = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan"}
_OTHER_NAME |= {"atanh": "arctanh", "atan2": "arctan2", "neg": "negative", "mul": "multiply", "mm": "matmul"}
_OTHER_NAME |= {"bmm": "matmul", "eq": "equal", "ne": "not_equal", "gt": "greater", "ge": "greater_equal"}
_OTHER_NAME |= {"lt": "less", "le": "less_equal"}
OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(jnp, name) for name in _SAME_NAME},
    **{name: getattr(jnp, other) for name, other in _OTHER_NAME.items()},
    **dict.fromkeys(("alias", "clone", "lift_fresh_copy"), lambda x, **_: x),
    "erf": jax.lax.erf,
    "erfc": jax.lax.erfc,
    "erfinv": jax.lax.erf_inv,
    "lgamma": jax.lax.lgamma,
    "digamma": jax.lax.digamma,
    "rsqrt": jax.lax.rsqrt,
    "sigmoid": jax.nn.sigmoid,
    "relu": jax.nn.relu,
    "leaky_relu": lambda x, slope=0.01: jnp.where(x > 0, x, slope * x),
    "elu": _elu,
    "gelu": lambda x, *, approximate="none": jax.nn.gelu(x, approximate=approximate == "tanh"),
    "hardtanh": lambda x, least=-1.0, most=1.0: jnp.clip(x, least, most),
    "clamp": jnp.clip,
    "add": _scaled(jnp.add),
    "sub": _scaled(jnp.subtract),
    "div": _divided,
    "pow": _power,
    "where": jnp.where,
    "complex": jax.lax.complex,
    "view_as_complex": lambda x: jax.lax.complex(x[..., 0], x[..., 1]),
    "view_as_real": lambda x: jnp.stack([x.real, x.imag], -1),
    "_to_copy": _converted,
    "copy": lambda x, y: _converted(jnp.broadcast_to(y, x.shape)).astype(x.dtype),
    "full_like": lambda x, value, *, dtype=None, **_: _converted(jnp.full_like(x, value), dtype=dtype),
    "fill": jnp.full_like,
    "addmm": _product_and_sum,
    "_trilinear": _trilinear,
    "_cdist_forward": lambda x, y, order, _: _norm(x[..., :, None, :] - y[..., None, :, :], order, -1),
    "sum": functools.partial(_total, jnp.sum),
    "mean": functools.partial(_total, jnp.mean),
    "amax": functools.partial(_total, jnp.max),
    "amin": functools.partial(_total, jnp.min),
    "any": functools.partial(_total, jnp.any),
    "prod": functools.partial(_total, jnp.prod),
    "argmax": functools.partial(_total, jnp.argmax),
    "argmin": functools.partial(_total, jnp.argmin),
    "max.default": jnp.max,
    "min.default": jnp.min,
    "max": _with_place(jnp.max, jnp.argmax),
    "min": _with_place(jnp.min, jnp.argmin),
    "cumsum": lambda x, axis, *, dtype=None: jnp.cumsum(_converted(x, dtype=dtype), axis),
    "cumprod": lambda x, axis, *, dtype=None: jnp.cumprod(_converted(x, dtype=dtype), axis),
    "var": _variance,
    "var_mean": _variance_and_mean,
    "linalg_vector_norm": _norm,
    **ARRANGEMENTS,
    **LAYERS,
}
"""JAX functions by operation, with the overload in the name if it is a different operation: "add", "max.default"."""
