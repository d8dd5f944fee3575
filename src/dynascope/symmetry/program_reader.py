"""What is known of the values of a program, followed from its inputs to its outputs."""

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
    """Follows a program line by line, and into the programs that it calls."""

    @abc.abstractmethod
    def constant(self, value: Any) -> Any:
        """What is known of a number or an array that stands in the program."""

    @abc.abstractmethod
    def operation(self, equation: JaxprEqn, values: list[Any]) -> list[Any]:
        """What is known of the results of a line that is no call."""

    def line(self, equation: JaxprEqn, values: list[Any]) -> list[Any]:
        """What is known of the results of a line."""
        body = body_of(equation)
        return self.operation(equation, values) if body is None else self.run(*body, values)

    def run(self, jaxpr: Jaxpr, consts: Sequence[Any], entering: Sequence[Any]) -> list[Any]:
        """What is known of the outputs, from what is known of the inputs."""
        known = dict(zip(jaxpr.invars, entering, strict=True))
        known.update(zip(jaxpr.constvars, map(self.constant, consts), strict=True))

        def value(atom: Any) -> Any:
            return self.constant(atom.val) if isinstance(atom, Literal) else known[atom]

        for equation in jaxpr.eqns:
            results = self.line(equation, [value(each) for each in equation.invars])
            known.update(zip(equation.outvars, results, strict=True))
        return [value(each) for each in jaxpr.outvars]


class RuleReader(ProgramReader):
    """Follows a program by one rule for each primitive, and runs what it counts and branches by."""

    @abc.abstractmethod
    def apply(self, primitive: Primitive, operation: Operation, values: list[Any]) -> list[Any]:
        """What the rule of a primitive makes of its operands."""

    @abc.abstractmethod
    def row(self, value: Any, at: int) -> Any:
        """One of what is stacked."""

    @abc.abstractmethod
    def are_same(self, fixed: list[Any], before: list[Any], after: list[Any]) -> bool:
        """Whether a step, which also saw what is fixed, left what is known of the state as it was."""

    def loop(self, equation: JaxprEqn, values: list[Any]) -> list[Any] | None:
        """What is known of the results of a loop, or of branches of which it is not known which is taken."""

    def operation(self, equation: JaxprEqn, values: list[Any]) -> list[Any]:
        """What is known of the results of a line that is no call."""
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
        """After each step of a `scan` its state and what it wrote, until all steps that come are the same.

        Args:
            params: The parameters of the `scan`.
            fixed: What each step sees.
            state: What is carried from step to step.
            rows: What is read row by row.
            uneven: Whether rows differ.
        """
        body, length = params["jaxpr"], params["length"]
        for number in range(length):
            at = length - 1 - number if params["reverse"] else number
            found = self.run(body.jaxpr, body.consts, [*fixed, *state, *(self.row(each, at) for each in rows)])
            before, state = state, found[: len(state)]
            yield state, found[len(state) :]
            if not uneven and self.are_same(fixed, before, state):
                return
