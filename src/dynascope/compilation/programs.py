"""`jax.jit` and `equinox.filter_jit` with the fast memory layout for convolutions on CPUs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import equinox as eqx
import jax
from jax.core import Tracer

from dynascope.compilation.convolutions import with_fast_convolutions

__all__ = ["filter_jit", "jit"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Function = Callable[_Arguments, _Result]


def jit(function: _Function, **options: Any) -> _Function:
    """`jax.jit`, with convolutions in the fast memory layout on CPUs.

    No compiler options are set, because XLA options for speed have produced wrong gradients of `max` and `min`. The
    function is `jax.jit` itself on other devices, inside another compiled function, and under `grad` or `vmap`.

    Args:
        function: Function to compile.
        **options: Passed to `jax.jit`.

    Returns:
        The compiled function.

    Example:
        >>> float(jit(lambda x: 2 * x)(1.0))
        2.0
    """
    return _compiled(jax.jit, function, options)


def filter_jit(function: _Function, **options: Any) -> _Function:
    """`equinox.filter_jit`, with convolutions in the fast memory layout on CPUs.

    Arguments that are not arrays are static, as in `equinox.filter_jit`.

    Args:
        function: Function to compile.
        **options: Passed to `equinox.filter_jit`.

    Returns:
        The compiled function.

    Example:
        >>> filter_jit(lambda x, name: {name: 2 * x})(1.0, "twice")["twice"]
        2.0
    """
    return _compiled(eqx.filter_jit, function, options)


def _compiled(jit: Callable[..., Any], function: _Function, options: dict[str, Any]) -> _Function:
    usual, fast = jit(function, **options), jit(with_fast_convolutions(function), **options)

    @functools.wraps(function)
    def call(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> Any:
        traced = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((arguments, named)))
        chosen = usual if traced or jax.default_backend() != "cpu" else fast
        return chosen(*arguments, **named)

    # Lets callers read the program.
    vars(call)["lower"] = usual.lower
    return call
