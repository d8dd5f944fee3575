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
    """How a value is computed.

    Attributes:
        is_constant: Whether the value depends on constants only.
        is_trained: Whether the value depends on parameters.
        is_product: Whether the value is a sum of products of matrices, up to a rearrangement.
    """

    is_constant: bool
    is_trained: bool
    is_product: bool = False


class _Value(NamedTuple):
    """An array and its origin."""

    array: Any
    origin: _Origin


_CONSTANT, _DATA, _PARAMETER = _Origin(True, False), _Origin(False, False), _Origin(False, True)


_ADDITIONS = ("add", "sub", "add_any")
_KEEP_PRODUCTS = (*_ADDITIONS, "reshape", "transpose", "broadcast_in_dim", "squeeze", "convert_element_type", "slice")


def _joint(equation: JaxprEqn, origins: Sequence[_Origin]) -> _Origin:
    """Return the origin of the results of an equation."""
    name = equation.primitive.name
    product = name == "dot_general" or (name in _KEEP_PRODUCTS and any(each.is_product for each in origins))
    return _Origin(all(each.is_constant for each in origins), any(each.is_trained for each in origins), product)


def _without_constant(equation: JaxprEqn, origins: Sequence[_Origin]) -> int | None:
    """Return the place of the operand to which an equation adds a constant; None for other equations."""
    joint = _joint(equation, origins)
    if equation.primitive.name not in _ADDITIONS or not joint.is_trained:
        return None
    # Single numbers are removed from products only: without the ε of a norm, for example, values could be infinite.
    removed = [joint.is_product or bool(shape_of(each)) for each in equation.invars]
    kept = [place for place, origin in enumerate(origins) if not (origin.is_constant and removed[place])]
    return kept[0] if len(kept) == 1 else None


class _Search(ProgramReader):
    """Reads from which constants and parameters values are computed, and counts the added constants."""

    def __init__(self) -> None:
        self.added = 0

    def constant(self, value: Any) -> _Origin:
        return _CONSTANT

    def operation(self, equation: JaxprEqn, values: list[_Origin]) -> list[_Origin]:
        self.added += _without_constant(equation, values) is not None
        return [_joint(equation, values)] * len(equation.outvars)


class _Evaluation(ProgramReader):
    """Evaluates a program without the constants that it adds; loops and branches are evaluated unchanged."""

    def constant(self, value: Any) -> _Value:
        return _Value(value, _CONSTANT)

    def operation(self, equation: JaxprEqn, values: list[_Value]) -> list[_Value]:
        origins = [each.origin for each in values]
        place = _without_constant(equation, origins)
        if place is not None:
            sign = -1 if place and equation.primitive.name == "sub" else 1
            kept = jnp.broadcast_to(values[place].array, shape_of(equation.outvars[0]))
            return [_Value(sign * kept, _joint(equation, origins))]
        found = equation.primitive.bind(*(each.array for each in values), **equation.params)
        found = found if equation.primitive.multiple_results else [found]
        return [_Value(array, _joint(equation, origins)) for array in found]


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
    """Return the function without the constants that it adds to values that depend on parameters."""
    return _Bare(**{field.name: getattr(model, field.name) for field in dataclasses.fields(model)})


def adds_constants(program: ClosedJaxpr, parameters: int) -> bool:
    """Whether a program, whose first arguments are the parameters, adds constants to what depends on them."""
    search, count = _Search(), len(program.jaxpr.invars)
    search.run(program.jaxpr, program.consts, [_PARAMETER if n < parameters else _DATA for n in range(count)])
    return search.added > 0
