"""Abstract interpretation of a program: propagates properties of values from inputs to outputs."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from typing import Any

from jax.extend.core import Jaxpr, JaxprEqn, Literal

from dynascope.symmetry.operation import Operation, shape_of
from dynascope.symmetry.primitives import PRIMITIVES, UNKNOWN, Primitive
from dynascope.symmetry.program_loops import body_of, folded, sliced

__all__ = ["ProgramReader", "RuleReader"]


class ProgramReader(abc.ABC):
    """Interprets a program equation by equation, including the programs that it calls."""

    @abc.abstractmethod
    def constant(self, value: Any) -> Any:
        """Return the properties of a literal or constant array."""

    @abc.abstractmethod
    def operation(self, equation: JaxprEqn, values: list[Any]) -> list[Any]:
        """Return the properties of the results of an equation that is not a call."""

    def line(self, equation: JaxprEqn, values: list[Any]) -> list[Any]:
        """Return the properties of the results of an equation."""
        body = body_of(equation)
        return self.operation(equation, values) if body is None else self.run(*body, values)

    def run(self, jaxpr: Jaxpr, consts: Sequence[Any], entering: Sequence[Any]) -> list[Any]:
        """Return the properties of the outputs, given those of the inputs."""
        known = dict(zip(jaxpr.invars, entering, strict=True))
        known.update(zip(jaxpr.constvars, map(self.constant, consts), strict=True))

        def value(atom: Any) -> Any:
            return self.constant(atom.val) if isinstance(atom, Literal) else known[atom]

        for equation in jaxpr.eqns:
            results = self.line(equation, [value(each) for each in equation.invars])
            known.update(zip(equation.outvars, results, strict=True))
        return [value(each) for each in jaxpr.outvars]


class RuleReader(ProgramReader):
    """Interprets a program by one rule per primitive, and evaluates the integers that control loops and branches."""

    @abc.abstractmethod
    def apply(self, primitive: Primitive, operation: Operation, values: list[Any]) -> list[Any]:
        """Apply the rule of a primitive to its operands."""

    @abc.abstractmethod
    def row(self, value: Any, at: int) -> Any:
        """Return one row of a stacked value."""

    @abc.abstractmethod
    def are_same(self, fixed: list[Any], before: list[Any], after: list[Any]) -> bool:
        """Whether a loop step with these constants left the properties of the state unchanged."""

    def loop(self, equation: JaxprEqn, values: list[Any]) -> list[Any] | None:
        """Return the properties of the results of a loop or of a conditional with an unknown branch; otherwise None."""

    def operation(self, equation: JaxprEqn, values: list[Any]) -> list[Any]:
        """Return the properties of the results of an equation that is not a call."""
        name, params = equation.primitive.name, equation.params
        numbers = [each.constant for each in values]
        if (number := folded(equation, numbers)) is not None:
            return [self.constant(number)]
        if name == "cond" and numbers[0] is not None:
            branch = params["branches"][min(max(int(numbers[0]), 0), len(params["branches"]) - 1)]
            return self.run(branch.jaxpr, branch.consts, values[1:])
        if (found := self.loop(equation, values)) is not None:
            return found
        if name == "dynamic_slice" and (known := sliced(values[0].shape, params["slice_sizes"], numbers[1:])):
            name, params, values = "slice", known, values[:1]
        operation = Operation(name, params, list(map(shape_of, equation.outvars)))
        return self.apply(PRIMITIVES.get(name, UNKNOWN), operation, values)

    def steps(
        self, params: Any, fixed: list[Any], state: list[Any], rows: list[Any], *, uneven: bool
    ) -> Iterator[tuple[list[Any], list[Any]]]:
        """Yield the state and the outputs of each step of a `scan`, until all remaining steps are identical.

        Args:
            params: The parameters of the `scan`.
            fixed: The constants that each step reads.
            state: The state that is carried from step to step.
            rows: The stacked inputs that are read row by row.
            uneven: Whether the rows differ.
        """
        body, length = params["jaxpr"], params["length"]
        for number in range(length):
            at = length - 1 - number if params["reverse"] else number
            found = self.run(body.jaxpr, body.consts, [*fixed, *state, *(self.row(each, at) for each in rows)])
            before, state = state, found[: len(state)]
            yield state, found[len(state) :]
            if not uneven and self.are_same(fixed, before, state):
                return
