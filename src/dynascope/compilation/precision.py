"""Compilation of closed forms in double precision, independent of the default precision of JAX."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeAlias, TypeVar

import jax
import numpy as np
from jax.core import Tracer

from dynascope.compilation.programs import jit

__all__ = ["AnyArray", "float64_jit"]

# The result of a closed form: an array of the library of its arguments.
AnyArray: TypeAlias = jax.Array | np.ndarray

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Function = Callable[_Arguments, _Result]


def float64_jit(function: _Function, **options: Any) -> _Function:
    """Compile a function as `jit` does, but compute in float64.

    In float32, 1e-50 underflows to zero and the square of 1e20 overflows.

    If all arguments are NumPy arrays or Python numbers, the results are float64 NumPy arrays; a JAX array would be
    rounded to float32 by the next operation. If some arguments are JAX arrays, the computation is also in float64, but
    the results are JAX arrays of the promoted type. Traced arguments require `jax.enable_x64(True)` around the trace,
    which `validation.real_array` checks.

    Args:
        function: The function to compile.
        **options: Passed to `jit`.

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

    # Gives access to the compiled program.
    vars(call)["lower"] = vars(compiled)["lower"]
    return call


def _of_jax(compiled: Any, arguments: Any, named: Any, floating: list[Any]) -> Any:
    """Call the function on arguments that include JAX arrays, and cast the results to their promoted type."""
    usual = jax.numpy.result_type(float)
    with jax.enable_x64(True):
        dtype = jax.numpy.result_type(*floating)
        # The type to which JAX promotes, without its warning about truncation of NumPy's float64.
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
        # An array, because JAX compiles a separate program for a weakly typed number.
        return np.asarray(leaf)
    if type(leaf) is np.ndarray and leaf.dtype == np.float64:
        return leaf
    if not _is_floating(leaf) or leaf.dtype == np.float64:
        return leaf
    # NumPy widens known values without compilation.
    return leaf.astype(np.float64) if isinstance(leaf, Tracer) else np.asarray(leaf, np.float64)


def _cast(part: Any, dtype: Any) -> Any:
    if not _is_floating(part):
        return part
    return part.astype(dtype) if isinstance(part, Tracer) else jax.device_put(np.asarray(part).astype(dtype))
