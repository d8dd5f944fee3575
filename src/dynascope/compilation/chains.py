"""Make a loop of what a library calls a hundred times in a row."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, JaxprEqn, Var, jaxpr_as_fun

__all__ = ["rolled"]

_LONG = 10  # calls in a chain that is worth a loop


def rolled(program: ClosedJaxpr) -> ClosedJaxpr:
    """The program with its long chains of one call as loops; those inside of loops are left as they are.

    A chain calls a function again and again, each time of its own result, and it is compiled as often. That of diffrax,
    which goes back from the last time by a hundred roundings, took a fifth of the time to compile a gradient flow. What
    is computed, and its derivatives, are the same to the last bit.

    Args:
        program: What `jax.make_jaxpr` gives.

    Example:
        >>> import equinox
        >>> def later(x):
        ...     for _ in range(50):
        ...         x = equinox.internal.nextafter(x)
        ...     return x
        >>> program = jax.make_jaxpr(later)(jax.numpy.ones(()))
        >>> len(program.jaxpr.eqns), len(rolled(program).jaxpr.eqns)
        (50, 1)
    """
    lines = [line for chain in _chains(program) for line in ([_loop(chain)] if len(chain) >= _LONG else chain)]
    return program.replace(jaxpr=program.jaxpr.replace(eqns=lines))


def _chains(program: ClosedJaxpr) -> Iterator[list[JaxprEqn]]:
    """All lines in order, those together that call the same of what only the line before gave."""
    read = [*program.jaxpr.outvars, *(each for line in program.jaxpr.eqns for each in line.invars)]
    readers = collections.Counter(each for each in read if isinstance(each, Var))
    texts: dict[int, str] = {}

    def called(line: JaxprEqn) -> str:
        # What has a rule of its own for the derivative is a function that was called. To print it takes long.
        if line.primitive.name != "custom_jvp_call":
            return ""
        if id(line) not in texts:
            texts[id(line)] = str(line.params["call_jaxpr"])
        return texts[id(line)]

    chain: list[JaxprEqn] = []
    for line in program.jaxpr.eqns:
        if line.primitive.name == "jit":
            line = line.replace(params={**line.params, "jaxpr": rolled(line.params["jaxpr"])})
        if chain:
            last = chain[-1].outvars
            alone = line.invars == last and len(last) == 1 == readers[last[0]]
            if not (alone and called(line) == called(chain[-1]) != ""):
                yield chain
                chain = []
        chain.append(line)
    yield chain


def _loop(chain: list[JaxprEqn]) -> JaxprEqn:
    """One line that computes what a chain does."""
    first, last, (variable,) = chain[0], chain[-1], chain[0].invars
    body, shape = first.params["call_jaxpr"], variable.aval
    once = body.jaxpr.replace(constvars=(), invars=first.invars, outvars=first.outvars, eqns=[first])

    def repeated(value: Any) -> Any:
        again = jaxpr_as_fun(ClosedJaxpr(once, ()))
        return jax.lax.fori_loop(0, len(chain), lambda _, value: again(value)[0], value)

    program = jax.make_jaxpr(repeated)(shape).jaxpr
    (line,) = program.eqns
    known = dict(zip((*program.invars, *program.outvars), (variable, *last.outvars), strict=True))
    return line.replace(
        invars=[each if not isinstance(each, Var) else known[each] for each in line.invars],
        outvars=[known.get(each, each) for each in line.outvars],
    )
