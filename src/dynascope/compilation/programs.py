"""Compile functions as `jax.jit` does, for a processor in about half the time."""

from __future__ import annotations

import functools
import re
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

# LLVM gets a program in parts, for as many cores at once. Making XLA's 32 is a fifth of all that compiling takes.
_PARTS = 4
# XLA's newer way to make the loops of a processor takes longer than all else that it does; of the rest LLVM's dearest
# passes are a third, and in long programs half of what then remains is for levels above the first. That one vectorises
# too, and loops run no faster for all the others. (That of jaxlib 0.11.2 has the newer way only, and no option.)
_OPTIONS = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_llvm_disable_expensive_passes": True,
    "xla_backend_optimization_level": 1,
    "xla_cpu_parallel_codegen_split_count": _PARTS,
}
# Loops that are not vectorised are made in half the time, and run at a third of the speed; at the same where arrays are
# small, as there is nothing to vectorise.
_BRIEF = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_backend_optimization_level": 0,
    "xla_cpu_parallel_codegen_split_count": _PARTS,
}
_SMALL = 500  # numbers in all arguments together
_UNKNOWN = re.compile(r"No such compile option: '(\w+)'")
# Options come and go with versions of the compiler. What the installed one does not know is found out by the first
# program, which is then handed over again without it; later ones leave it out.
_refused: set[str] = set()
_WITHIN = "`compiler_options` can only be passed to top-level"  # a compiled function, of which no argument is traced


def jit(function: _Function, *, brief: bool | None = True, **options: Any) -> _Function:
    """`jax.jit`, for functions of which compiling costs more than running.

    On other devices, within another compiled function, and under `grad` or `vmap`, it is `jax.jit` itself, as the
    outermost function alone says how all is compiled.

    Args:
        function: What is compiled.
        brief: Whether all its calls together take less time than compiling it well, as those of a closed form. None
            where its arguments are at most 500 numbers.
        **options: Of `jax.jit`.

    Returns:
        The compiled function.

    Example:
        >>> float(jit(lambda x: 2 * x)(1.0))
        2.0
    """
    return _compiled(jax.jit, function, brief, options)


def filter_jit(function: _Function, *, brief: bool | None = None, **options: Any) -> _Function:
    """`equinox.filter_jit` in the way of `jit`: what is no array in the arguments is part of the program.

    Args:
        function: What is compiled.
        brief: As for `jit`; if not given, None.
        **options: Of `equinox.filter_jit`.

    Returns:
        The compiled function.

    Example:
        >>> filter_jit(lambda x, name: {name: 2 * x})(1.0, "twice")["twice"]
        2.0
    """
    return _compiled(eqx.filter_jit, function, brief, options)


def _compiled(jit: Callable[..., Any], function: _Function, brief: bool | None, options: dict[str, Any]) -> _Function:
    usual, fast = jit(function, **options), with_fast_convolutions(function)

    @functools.cache
    def quick(small: bool, unknown: frozenset[str]) -> Callable[..., Any]:
        wanted = {name: value for name, value in (_BRIEF if small else _OPTIONS).items() if name not in unknown}
        return jit(fast, compiler_options=wanted, **options)

    @functools.wraps(function)
    def call(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> Any:
        leaves = jax.tree.leaves((arguments, named))
        if jax.default_backend() != "cpu" or any(isinstance(leaf, Tracer) for leaf in leaves):
            return usual(*arguments, **named)
        small = sum(leaf.size for leaf in leaves if eqx.is_array(leaf)) <= _SMALL if brief is None else brief
        while True:
            try:
                return quick(small, frozenset(_refused))(*arguments, **named)
            except ValueError as error:
                if _WITHIN not in str(error):
                    raise
                return usual(*arguments, **named)
            except jax.errors.JaxRuntimeError as error:
                unknown = _UNKNOWN.search(str(error))
                if unknown is None or unknown[1] in _refused:
                    raise
                _refused.add(unknown[1])

    # For those who want to read the program.
    vars(call)["lower"] = usual.lower
    return call
