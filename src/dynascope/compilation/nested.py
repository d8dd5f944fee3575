"""The equations of a JAX program and of all programs that it calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jax.extend.core import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Var, jaxpr_as_fun

__all__ = ["called_programs", "evaluate", "primitives"]


def primitives(program: Jaxpr, known: dict[int, frozenset[str]]) -> frozenset[str]:
    """Return the names of all primitives of a program, including those in its loops, branches and calls.

    Args:
        program: The `jaxpr` attribute of the result of `jax.make_jaxpr`.
        known: A cache of results by the `id` of each program, extended in place, because one program can be called many
            times.

    Example:
        >>> import jax
        >>> program = jax.make_jaxpr(lambda x: jax.lax.cond(x > 0, jax.numpy.sin, jax.numpy.cos, x))(1.0)
        >>> sorted(primitives(program.jaxpr, {}))
        ['cond', 'convert_element_type', 'cos', 'gt', 'sin']
    """
    if id(program) not in known:
        names = {line.primitive.name for line in program.eqns}
        parts = [primitives(each, known) for line in program.eqns for each in called_programs(line)]
        known[id(program)] = frozenset(names.union(*parts))
    return known[id(program)]


def called_programs(line: JaxprEqn) -> Iterator[Jaxpr]:
    """Yield the programs that an equation calls: the body of a loop, or all branches of a conditional.

    Example:
        >>> import jax
        >>> program = jax.make_jaxpr(lambda x: jax.lax.cond(x > 0, jax.numpy.sin, jax.numpy.cos, x))(1.0)
        >>> [len(list(called_programs(line))) for line in program.eqns]
        [0, 0, 2]
    """
    for value in line.params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            if isinstance(part, ClosedJaxpr):
                yield part.jaxpr
            elif isinstance(part, Jaxpr):
                yield part


def evaluate(equation: JaxprEqn, values: Sequence[Any]) -> list[Any]:
    """Evaluate one equation as a separate program, without rules for specific primitives.

    Example:
        >>> import jax
        >>> (equation,) = jax.make_jaxpr(jax.lax.add)(1.0, 2.0).eqns
        >>> [float(each) for each in evaluate(equation, [3.0, 4.0])]
        [7.0]
    """
    entering = {atom: value for atom, value in zip(equation.invars, values, strict=True) if isinstance(atom, Var)}
    names = DebugInfo("equation", equation.primitive.name, ("",) * len(entering), ("",) * len(equation.outvars))
    program = Jaxpr([], list(entering), equation.outvars, [equation], effects=equation.effects, debug_info=names)
    return jaxpr_as_fun(ClosedJaxpr(program, ()))(*entering.values())
