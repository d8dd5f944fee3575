"""What a program that is read needs of its loops: numbers that they count by, and the programs of their steps."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.extend.core import Jaxpr, JaxprEqn

from dynascope.symmetry.views import shape_of

__all__ = ["LONGEST", "bodies", "folded", "sliced"]

LONGEST = 256  # steps that are read one by one

_FOLDED: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
    "max": max,
    "min": min,
    "rem": np.fmod,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "and": lambda one, other: int(one) & int(other),
    "or": lambda one, other: int(one) | int(other),
    "clamp": lambda least, one, most: min(max(one, least), most),
    "not": lambda one: not one,
    "convert_element_type": lambda one: one,
    "select_n": lambda which, *cases: cases[int(which)],
}


def folded(equation: JaxprEqn, numbers: Sequence[float | None]) -> float | None:
    """The integer or truth that an equation gives, where all its operands are known numbers."""
    out = equation.outvars[0].aval
    dtype = getattr(out, "dtype", np.dtype(float))
    counts = jnp.issubdtype(dtype, jnp.integer) or dtype == np.dtype(bool)
    rule = _FOLDED.get(equation.primitive.name)
    known = [each for each in numbers if each is not None]
    if rule is None or not counts or len(known) < len(numbers) or shape_of(equation.outvars[0]):
        return None
    if equation.primitive.name == "not" and dtype != np.dtype(bool):
        return None
    return float(rule(*known)) if all(each.is_integer() for each in known) else None


def sliced(shape: Sequence[int], sizes: Sequence[int], starts: Sequence[float | None]) -> dict[str, Any] | None:
    """The parameters of the `slice` that a `dynamic_slice` is, where it is known where it starts."""
    begins = []
    for length, size, start in zip(shape, sizes, starts, strict=True):
        if start is None and size < length:
            return None
        begins.append(0 if start is None else int(min(max(start, 0), length - size)))
    limits = tuple(start + size for start, size in zip(begins, sizes, strict=True))
    return {"start_indices": tuple(begins), "limit_indices": limits, "strides": None}


def bodies(equation: JaxprEqn) -> list[Jaxpr]:
    """The programs that an equation runs, once or many times."""
    found = []
    for value in equation.params.values():
        for each in value if isinstance(value, tuple | list) else (value,):
            inner = getattr(each, "jaxpr", each)
            if hasattr(inner, "eqns"):
                found.append(inner)
    return found
