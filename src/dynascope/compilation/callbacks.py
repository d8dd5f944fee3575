"""Take the run-time checks of a library out of a compiled program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, JaxprEqn, jaxpr_as_fun

from dynascope.compilation.chains import rolled

__all__ = ["without_callbacks"]


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
    lines = [_quiet_line(line) if _calls_python(line) else line for line in program.jaxpr.eqns]
    return program.replace(jaxpr=program.jaxpr.replace(eqns=lines))


def _quiet_line(line: JaxprEqn) -> JaxprEqn:
    if line.primitive.name == "cond":
        branches = line.params["branches"]
        quiet = next((each for each in branches if not any(map(_calls_python, each.jaxpr.eqns))), None)
        if quiet is not None:
            return line.replace(params={**line.params, "branches": (quiet,) * len(branches)})
    if line.primitive.name.endswith("callback"):
        raise NotImplementedError(f"the program calls Python by {line.primitive.name}, and there is no way round it")
    parameters = {
        name: jax.tree.map(lambda part: _quiet(part) if isinstance(part, ClosedJaxpr) else part, value, is_leaf=_whole)
        for name, value in line.params.items()
    }
    return line.replace(params=parameters)


def _calls_python(line: JaxprEqn) -> bool:
    if line.primitive.name.endswith("callback"):
        return True
    parts = [part for part in jax.tree.leaves(line.params, is_leaf=_whole) if isinstance(part, ClosedJaxpr)]
    return any(_calls_python(each) for part in parts for each in part.jaxpr.eqns)


def _whole(part: Any) -> bool:
    return isinstance(part, ClosedJaxpr)
