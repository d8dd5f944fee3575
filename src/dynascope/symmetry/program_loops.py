"""Loops and calls of a program: the integers that control them, and the programs inside them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

from dynascope.symmetry.operation import shape_of

__all__ = ["LONGEST", "bodies", "body_of", "folded", "scanned", "sliced"]

_Operand = TypeVar("_Operand")

LONGEST = 256  # loop steps that are read one by one

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
    """Evaluate an equation with an integer or boolean result if all its operands are known; otherwise return None."""
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
    """Return the parameters of the `slice` equivalent to a `dynamic_slice` with known start; otherwise None."""
    begins = []
    for length, size, start in zip(shape, sizes, starts, strict=True):
        if start is None and size < length:
            return None
        begins.append(0 if start is None else int(min(max(start, 0), length - size)))
    limits = tuple(start + size for start, size in zip(begins, sizes, strict=True))
    return {"start_indices": tuple(begins), "limit_indices": limits, "strides": None}


def scanned(
    params: Mapping[str, Any], operands: Sequence[_Operand]
) -> tuple[list[_Operand], list[_Operand], list[_Operand]]:
    """Split the operands of a `scan` into constants, carried state and stacked inputs.

    JAX up to version 0.10 stores the numbers of constants and carries; version 0.11 stores a tree with three branches.
    """
    if "ft_in" in params:
        fixed, carried, _ = map(len, params["ft_in"].unpack())
    else:
        fixed, carried = params["num_consts"], params["num_carry"]
    last = fixed + carried
    return list(operands[:fixed]), list(operands[fixed:last]), list(operands[last:])


def body_of(equation: JaxprEqn) -> tuple[Jaxpr, Sequence[Any]] | None:
    """Return the program that an equation calls with its operands, if it is a plain call; otherwise None.

    `unstack` is treated as a call of slices, and `tile` as a call of a broadcast and a reshape, because JAX emits both
    forms.
    """
    if equation.primitive.name in ("unstack", "tile"):
        (array,) = equation.invars
        if equation.primitive.name == "unstack":
            written = _slices(array.aval, equation.params["axis"])
        else:
            written = _repeated(array.aval, tuple(equation.params["reps"]))
        return written.jaxpr, written.consts
    if equation.primitive.name in ("scan", "while", "cond"):
        return None
    for name in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        body = equation.params.get(name)
        inner = getattr(body, "jaxpr", body)
        if inner is not None and hasattr(inner, "eqns") and len(inner.invars) == len(equation.invars):
            return inner, getattr(body, "consts", ())
    return None


def bodies(equation: JaxprEqn) -> list[Jaxpr]:
    """Return the programs that an equation runs, once or many times."""
    found = []
    if equation.primitive.name in ("unstack", "tile") and (body := body_of(equation)) is not None:
        found.append(body[0])
    for value in equation.params.values():
        for each in value if isinstance(value, tuple | list) else (value,):
            inner = getattr(each, "jaxpr", each)
            if hasattr(inner, "eqns"):
                found.append(inner)
    return found


@functools.cache
def _slices(kind: Any, axis: int) -> ClosedJaxpr:
    """Return the program that takes every index of an array of the given shape and type along an axis."""

    def taken(array: jax.Array) -> list[jax.Array]:
        return [jax.lax.index_in_dim(array, place, axis, keepdims=False) for place in range(kind.shape[axis])]

    # In 32-bit mode, JAX would warn about 64-bit types.
    with jax.enable_x64(True):
        return jax.make_jaxpr(taken)(kind)


@functools.cache
def _repeated(kind: Any, counts: tuple[int, ...]) -> ClosedJaxpr:
    """Return the program that repeats an array of the given shape and type along each axis."""

    def repeated(array: jax.Array) -> jax.Array:
        single = jnp.expand_dims(array, tuple(range(0, 2 * array.ndim, 2)))
        doubled = [each for pair in zip(counts, array.shape, strict=True) for each in pair]
        return jnp.broadcast_to(single, doubled).reshape(np.multiply(counts, array.shape))

    # See `_slices`.
    with jax.enable_x64(True):
        return jax.make_jaxpr(repeated)(kind)
