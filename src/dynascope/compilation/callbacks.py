"""Take the run-time checks of a library out of a compiled program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, JaxprEqn, jaxpr_as_fun

from dynascope.compilation.chains import rolled
from dynascope.compilation.nested import called_programs, primitives

__all__ = ["without_callbacks"]

_CALLBACK = "callback"  # how the names of all primitives end that call Python


def without_callbacks(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function without the checks that would call Python while its compiled program runs.

    A check of `equinox.error_if`, as diffrax makes one of the times to save at, is a branch that calls Python to raise
    and else hands its values on. A program with such a branch can never be kept on disk. Here the branch is taken
    out, so that what is checked has to be known to hold, and what a solver finds wrong comes back as the code in its
    result. All else is computed as before, to the last bit. (The derivative with respect to what is checked has the
    right value, but checks again.)

    What diffrax calls a hundred times, to go back from the last time by as many roundings, is called in a loop.

    Args:
        function: Traceable function of arrays, and of trees of them, whose result is such a tree.

    Raises:
        NotImplementedError: A call of Python that is no check: it has no branch to go round it.

    References:
        The documentation of equinox, under `equinox.error_if`.

    Example:
        >>> import equinox
        >>> root = lambda x: jax.numpy.sqrt(equinox.error_if(x, x < 0, "x is negative"))
        >>> "callback" in jax.jit(root).lower(4.0).as_text()
        True
        >>> kept = jax.jit(without_callbacks(root))
        >>> "callback" in kept.lower(4.0).as_text(), float(kept(4.0))
        (False, 2.0)
    """

    @functools.wraps(function)
    def checked_before(*arguments: Any) -> Any:
        program, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
        results = jaxpr_as_fun(rolled(_quiet(program)))(*jax.tree.leaves(arguments))
        return jax.tree.unflatten(jax.tree.structure(shape), results)

    return checked_before


def _quiet(program: ClosedJaxpr) -> ClosedJaxpr:
    """The program with the branches that call Python replaced by those beside them, which do not."""
    known: dict[int, frozenset[str]] = {}

    def calls_python(line: JaxprEqn) -> bool:
        within = [primitives(each, known) for each in called_programs(line)]
        return any(name.endswith(_CALLBACK) for name in {line.primitive.name}.union(*within))

    def quiet(program: ClosedJaxpr) -> ClosedJaxpr:
        lines = [quiet_line(line) if calls_python(line) else line for line in program.jaxpr.eqns]
        return program.replace(jaxpr=program.jaxpr.replace(eqns=lines))

    def quiet_line(line: JaxprEqn) -> JaxprEqn:
        if line.primitive.name == "cond":
            branches = line.params["branches"]
            beside = next((each for each in branches if not any(map(calls_python, each.jaxpr.eqns))), None)
            if beside is not None:
                return line.replace(params={**line.params, "branches": (beside,) * len(branches)})
        name = line.primitive.name
        if name.endswith(_CALLBACK):
            raise NotImplementedError(f"the program calls Python by {name}, and there is no way round it")
        return line.replace(params=jax.tree.map(quiet_part, line.params, is_leaf=_whole))

    def quiet_part(part: Any) -> Any:
        return quiet(part) if _whole(part) else part

    return quiet(program)


def _whole(part: Any) -> bool:
    return isinstance(part, ClosedJaxpr)
