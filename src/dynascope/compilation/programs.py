"""Compile functions as `jax.jit` does, for a processor in about half the time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import equinox as eqx
import jax
from jax.core import Tracer

__all__ = ["filter_jit", "jit"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Function = Callable[_Arguments, _Result]

# XLA's newer way to make the loops of a processor takes longer than all else that it does, and the loops run no faster.
_OPTIONS = {"xla_cpu_use_fusion_emitters": False}
_UNKNOWN = "No such compile option"
_WITHIN = "`compiler_options` can only be passed to top-level"  # a compiled function, of which no argument is traced


def jit(function: _Function, **options: Any) -> _Function:
    """`jax.jit`, for functions of which compiling costs more than running.

    Within another compiled function, and under `grad` or `vmap`, it is `jax.jit` itself, as the outermost function
    alone says how all is compiled.

    Args:
        function: What is compiled.
        **options: Of `jax.jit`.

    Returns:
        The compiled function.

    Example:
        >>> float(jit(lambda x: 2 * x)(1.0))
        2.0
    """
    return _compiled(jax.jit, function, options)


def filter_jit(function: _Function, **options: Any) -> _Function:
    """`equinox.filter_jit` in the way of `jit`: what is no array in the arguments is part of the program.

    Args:
        function: What is compiled.
        **options: Of `equinox.filter_jit`.

    Returns:
        The compiled function.

    Example:
        >>> filter_jit(lambda x, name: {name: 2 * x})(1.0, "twice")["twice"]
        2.0
    """
    return _compiled(eqx.filter_jit, function, options)


def _compiled(jit: Callable[..., Any], function: _Function, options: dict[str, Any]) -> _Function:
    usual = jit(function, **options)
    quick = jit(function, compiler_options=_OPTIONS, **options)

    @functools.wraps(function)
    def call(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> Any:
        nonlocal quick
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((arguments, named))):
            return usual(*arguments, **named)
        try:
            return quick(*arguments, **named)
        except ValueError as error:
            if _WITHIN not in str(error):
                raise
        except jax.errors.JaxRuntimeError as error:
            # A compiler that has one way left.
            if _UNKNOWN not in str(error):
                raise
            quick = usual
        return usual(*arguments, **named)

    # For those who want to read the program.
    vars(call)["lower"] = usual.lower
    return call
