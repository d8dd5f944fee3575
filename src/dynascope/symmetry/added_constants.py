"""Removes the constants that a program adds to values that depend on parameters."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, JaxprEqn

from dynascope.symmetry.operation import shape_of
from dynascope.symmetry.parameters import Model
from dynascope.symmetry.program_reader import ProgramReader

__all__ = ["adds_constants", "without_constants"]


class _Value(NamedTuple):
    """An array, whether it depends on constants only, and whether it depends on parameters."""

    array: Any
    is_constant: bool
    is_trained: bool


class _Evaluation(ProgramReader):
    """Evaluates a program without the arrays of constants that it adds; loops and branches are evaluated unchanged."""

    def __init__(self) -> None:
        self.removed = 0

    def constant(self, value: Any) -> _Value:
        return _Value(value, True, False)

    def operation(self, equation: JaxprEqn, values: list[_Value]) -> list[_Value]:
        is_constant, is_trained = all(e.is_constant for e in values), any(e.is_trained for e in values)
        if equation.primitive.name in ("add", "sub", "add_any") and is_trained:
            # Numbers such as the ε of a norm stay, because their removal could make values infinite.
            kept = [(place, e) for place, e in enumerate(values) if not e.is_constant or not np.ndim(e.array)]
            if len(kept) == 1:
                ((place, one),) = kept
                self.removed += 1
                sign = -1 if place and equation.primitive.name == "sub" else 1
                return [_Value(sign * jnp.broadcast_to(one.array, shape_of(equation.outvars[0])), False, True)]
        found = equation.primitive.bind(*(e.array for e in values), **equation.params)
        found = found if equation.primitive.multiple_results else [found]
        return [_Value(array, is_constant, is_trained) for array in found]


@dataclasses.dataclass(frozen=True)
class _Bare(Model):
    """A function without the constants that it adds."""

    def outputs(self, parameters: Any, frozen: Any, inputs: Any) -> jax.Array:
        """Compute all real outputs for the inputs, flattened into one array."""
        program = jax.make_jaxpr(super().outputs)(parameters, frozen, inputs)
        return _evaluated(program, parameters, (*frozen, *inputs))[0]


def without_constants(model: Model) -> Model:
    """Return the function without the arrays of constants that it adds to values that depend on parameters."""
    return _Bare(**{field.name: getattr(model, field.name) for field in dataclasses.fields(model)})


def adds_constants(program: ClosedJaxpr, parameters: int) -> bool:
    """Whether a program, whose first arguments are the parameters, adds arrays of constants to what depends on them."""
    removed = 0

    def evaluated(*arrays: Any) -> Any:
        nonlocal removed
        found, removed = _evaluated(program, arrays[:parameters], arrays[parameters:])
        return found

    with jax.enable_x64(True):
        jax.eval_shape(evaluated, *(jax.ShapeDtypeStruct(e.aval.shape, e.aval.dtype) for e in program.jaxpr.invars))
    return removed > 0


def _evaluated(program: ClosedJaxpr, parameters: Any, others: Any) -> tuple[Any, int]:
    evaluation = _Evaluation()
    entering = [*(_Value(e, False, True) for e in parameters), *(_Value(e, False, False) for e in others)]
    (found,) = evaluation.run(program.jaxpr, program.consts, entering)
    return found.array, evaluation.removed
