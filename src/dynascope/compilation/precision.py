"""Compile closed forms so that they are computed in double precision, whatever precision JAX has elsewhere."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeAlias, TypeVar

import jax
import numpy as np
from jax.core import Tracer

from dynascope.compilation.programs import jit

__all__ = ["AnyArray", "float64_jit"]

# What a closed form gives: arrays of the library that its arguments are of.
AnyArray: TypeAlias = jax.Array | np.ndarray

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Function = Callable[_Arguments, _Result]


def float64_jit(function: _Function, **options: Any) -> _Function:
    """`jit` of a function that needs 64 bits: starts of 1e-50 are zero in 32, and squares of 1e20 infinite.

    NumPy arrays and Python numbers alone give NumPy arrays of 64 bits, as a JAX array would fall back to 32 in the next
    operation. Where there are JAX arrays among them, the answer is one, of the type that JAX gives to all of them; it
    is computed in 64 bits too. Values that JAX traces need `jax.enable_x64(True)` around the trace, which
    `validation.real_array` asks for.

    Args:
        function: What is compiled.
        **options: Of `jit`.

    Returns:
        The compiled function.

    Example:
        >>> square = float64_jit(lambda x: x**2)
        >>> print(square(1e-50), square(np.float32(1e-30)).dtype, square(jax.numpy.ones(1)).dtype)
        1e-100 float64 float32
    """
    compiled = jit(function, **options)

    @functools.wraps(function)
    def call(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> Any:
        leaves, structure = jax.tree.flatten((arguments, named))
        if any(isinstance(leaf, jax.Array) and _is_floating(leaf) for leaf in leaves):
            return _of_jax(compiled, arguments, named, [leaf for leaf in leaves if _is_floating(leaf)])
        with jax.enable_x64(True):
            wide, options = jax.tree.unflatten(structure, map(_widened, leaves))
            return jax.tree.map(_known, compiled(*wide, **options))

    # For those who want to read the program.
    vars(call)["lower"] = vars(compiled)["lower"]
    return call


def _of_jax(compiled: Any, arguments: Any, named: Any, floating: list[Any]) -> Any:
    """The answer to arguments among which are JAX arrays, in the type that JAX gives to all of them."""
    usual = jax.numpy.result_type(float)
    with jax.enable_x64(True):
        dtype = jax.numpy.result_type(*floating)
        # The type that JAX gives, without its warning where that is narrower than one of NumPy.
        dtype = usual if dtype == np.float64 else dtype
        wide, options = jax.tree.map(_widened, (arguments, named))
        answer = compiled(*wide, **options)
        return answer if dtype == np.float64 else jax.tree.map(lambda part: _cast(part, dtype), answer)


def _known(part: Any) -> Any:
    # Copying by `jax.device_get` starts with an asynchronous copy, which costs more than most closed forms.
    return part if isinstance(part, Tracer) else np.asarray(part)


def _is_floating(leaf: Any) -> bool:
    if not isinstance(leaf, np.ndarray | np.generic | jax.Array):
        return False
    return leaf.dtype.kind == "f" or jax.numpy.issubdtype(leaf.dtype, np.floating)


def _widened(leaf: Any) -> Any:
    if type(leaf) is float:
        # As an array, because JAX compiles another program for a weakly typed number.
        return np.asarray(leaf)
    if type(leaf) is np.ndarray and leaf.dtype == np.float64:
        return leaf
    if not _is_floating(leaf) or leaf.dtype == np.float64:
        return leaf
    # What is known is widened by NumPy, for which nothing is compiled.
    return leaf.astype(np.float64) if isinstance(leaf, Tracer) else np.asarray(leaf, np.float64)


def _cast(part: Any, dtype: Any) -> Any:
    if not _is_floating(part):
        return part
    return part.astype(dtype) if isinstance(part, Tracer) else jax.device_put(np.asarray(part).astype(dtype))
