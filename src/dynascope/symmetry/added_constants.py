"""Removes the constants that a program adds to values that depend on parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, JaxprEqn

from dynascope.symmetry.operation import shape_of
from dynascope.symmetry.parameters import Model
from dynascope.symmetry.program_reader import ProgramReader

__all__ = ["adds_constants", "without_constants"]


class _Origin(NamedTuple):
    """Whether a value depends on constants only, and whether it depends on parameters."""

    is_constant: bool
    is_trained: bool


class _Value(NamedTuple):
    """An array and its origin."""

    array: Any
    origin: _Origin


_CONSTANT, _DATA, _PARAMETER = _Origin(True, False), _Origin(False, False), _Origin(False, True)


def _joint(origins: Sequence[_Origin]) -> _Origin:
    """Return the origin of a value that depends on several values."""
    return _Origin(all(each.is_constant for each in origins), any(each.is_trained for each in origins))


def _without_constant(equation: JaxprEqn, origins: Sequence[_Origin]) -> int | None:
    """Return the place of the operand to which an equation adds an array of constants; None for other equations."""
    if equation.primitive.name not in ("add", "sub", "add_any") or not _joint(origins).is_trained:
        return None
    # Numbers such as the ε of a norm stay, because their removal could make values infinite.
    arrays = [bool(shape_of(each)) for each in equation.invars]
    kept = [place for place, origin in enumerate(origins) if not (origin.is_constant and arrays[place])]
    return kept[0] if len(kept) == 1 else None


class _Search(ProgramReader):
    """Reads from which constants and parameters values are computed, and counts the added constants."""

    def __init__(self) -> None:
        self.added = 0

    def constant(self, value: Any) -> _Origin:
        return _CONSTANT

    def operation(self, equation: JaxprEqn, values: list[_Origin]) -> list[_Origin]:
        self.added += _without_constant(equation, values) is not None
        return [_joint(values)] * len(equation.outvars)


class _Evaluation(ProgramReader):
    """Evaluates a program without the arrays of constants that it adds; loops and branches are evaluated unchanged."""

    def constant(self, value: Any) -> _Value:
        return _Value(value, _CONSTANT)

    def operation(self, equation: JaxprEqn, values: list[_Value]) -> list[_Value]:
        origins = [each.origin for each in values]
        place = _without_constant(equation, origins)
        if place is not None:
            sign = -1 if place and equation.primitive.name == "sub" else 1
            kept = jnp.broadcast_to(values[place].array, shape_of(equation.outvars[0]))
            return [_Value(sign * kept, _PARAMETER)]
        found = equation.primitive.bind(*(each.array for each in values), **equation.params)
        found = found if equation.primitive.multiple_results else [found]
        return [_Value(array, _joint(origins)) for array in found]


@dataclasses.dataclass(frozen=True)
class _Bare(Model):
    """A function without the constants that it adds."""

    def outputs(self, parameters: Any, frozen: Any, inputs: Any) -> jax.Array:
        """Compute all real outputs for the inputs, flattened into one array."""
        program = jax.make_jaxpr(super().outputs)(parameters, frozen, inputs)
        entering = [*(_Value(each, _PARAMETER) for each in parameters)]
        entering += [_Value(each, _DATA) for each in (*frozen, *inputs)]
        (found,) = _Evaluation().run(program.jaxpr, program.consts, entering)
        return found.array


def without_constants(model: Model) -> Model:
    """Return the function without the arrays of constants that it adds to values that depend on parameters."""
    return _Bare(**{field.name: getattr(model, field.name) for field in dataclasses.fields(model)})


def adds_constants(program: ClosedJaxpr, parameters: int) -> bool:
    """Whether a program, whose first arguments are the parameters, adds arrays of constants to what depends on them."""
    search, count = _Search(), len(program.jaxpr.invars)
    search.run(program.jaxpr, program.consts, [_PARAMETER if n < parameters else _DATA for n in range(count)])
    return search.added > 0
