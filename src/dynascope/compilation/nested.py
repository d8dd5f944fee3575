"""What is computed in a program and in all programs that it calls."""

from __future__ import annotations

from collections.abc import Iterator

from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

__all__ = ["called_programs", "primitives"]


def primitives(program: Jaxpr, known: dict[int, frozenset[str]]) -> frozenset[str]:
    """The names of all primitives of a program, those within its loops, branches and calls too.

    Args:
        program: Of `jax.make_jaxpr`, the part `jaxpr`.
        known: Names by identity of a program, to which those found are added, since the same is called many times.

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
    """The programs that one line calls, as a loop its body and a branch both sides.

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
