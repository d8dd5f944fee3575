"""Which solver follows a flow: explicit steps where they suffice, linearly implicit ones where it is stiff."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from dynascope.flows.deadline import overdue
from dynascope.flows.solvers.adaptive import StiffFlow, follow_by_steps
from dynascope.flows.solvers.explicit import TSITOURAS
from dynascope.flows.solvers.rosenbrock import ROSENBROCK
from dynascope.flows.solvers.stepping import resolving

__all__ = ["Begun", "Solver", "Work", "few_equations", "follow_by_stiffness"]

Solver = Literal["explicit", "stiff"]

# Up to so many equations an implicit step costs hardly more than an explicit one, and there are never more of them.
_FEW = 150
# Beyond so many it takes longer than thousands of explicit ones.
_MANY = 1000
_PATIENCE = 2000  # explicit steps, after which a flow of a number of equations between these is taken to be stiff
_FEWEST = 100  # implicit steps that are worth being begun
_AT_ONCE, _AT_ONCE_LARGE = 256, 32  # steps in one call of a program, of few equations or of many
_AT_LEAST = 3e5  # operations that take as long as what a step does besides


class Work(NamedTuple):
    """What it costs to follow a flow, in floating-point operations, to within a factor of two or so.

    Attributes:
        explicit: Of an explicit step.
        implicit: Of an implicit one.
        most: After which the flow is given up.
    """

    explicit: float
    implicit: float
    most: float = math.inf

    def steps(self, solver: Solver, max_steps: int, *, after: int = 0) -> int:
        """How many steps there may be, after some explicit ones.

        Example:
            >>> Work(1e6, 1e8, most=1e10).steps("stiff", 1000, after=2000)
            80
        """
        left = self.most - after * max(self.explicit, _AT_LEAST)
        each = max(self.explicit if solver == "explicit" else self.implicit, _AT_LEAST)
        return int(min(max_steps, max(left / each, 1.0)))

    def of(self, *, explicit: int, implicit: int) -> float:
        """What so many steps cost.

        Example:
            >>> Work(1e6, 1e8).of(explicit=10, implicit=2)
            210000000.0
        """
        return explicit * max(self.explicit, _AT_LEAST) + implicit * max(self.implicit, _AT_LEAST)


class Begun(NamedTuple):
    """A flow, and where it begins.

    Attributes:
        flow: What is followed.
        state: Where it begins.
        equations: How many an implicit step solves at once.
        work: What its steps cost.
        patience: Explicit steps after which it is taken to be stiff, if its equations are few.
    """

    flow: StiffFlow
    state: Any
    equations: int
    work: Work
    patience: int = 0

    def follow(
        self,
        *,
        duration: float,
        tolerance: float,
        max_steps: int,
        operations: float | None = None,
        solver: Solver | None = None,
        partial: bool = False,
    ) -> tuple[dict[str, np.ndarray], float]:
        """As `follow_by_stiffness`, in double precision and for so many operations at most."""
        with jax.enable_x64(True):
            return follow_by_stiffness(
                self.flow,
                self.state,
                equations=self.equations,
                duration=duration,
                tolerance=tolerance,
                max_steps=max_steps,
                work=self.work._replace(most=math.inf if operations is None else float(operations)),
                patience=self.patience,
                solver=solver,
                partial=partial,
            )

    def resolved(
        self,
        points: int,
        *,
        duration: float,
        tolerance: float,
        max_steps: int,
        operations: float | None,
        solver: Solver | None,
        partial: bool,
    ) -> tuple[dict[str, np.ndarray], float]:
        """As `follow`, at the times that `resolving` keeps of so many."""
        record, took = self.follow(
            duration=duration,
            tolerance=tolerance,
            max_steps=max_steps,
            operations=operations,
            solver=solver,
            partial=partial,
        )
        return resolving(record, points), took


def few_equations(equations: int) -> bool:
    """Whether they are so few that a flow is followed by implicit steps, stiff or not.

    Example:
        >>> few_equations(13), few_equations(640)
        (True, False)
    """
    return equations <= _FEW


def follow_by_stiffness(
    flow: StiffFlow,
    state: Any,
    *,
    equations: int,
    duration: float,
    tolerance: float,
    max_steps: int,
    work: Work,
    patience: int = 0,
    solver: Solver | None = None,
    partial: bool = False,
) -> tuple[dict[str, np.ndarray], float]:
    """Follow a flow by the solver that its stiffness asks for, and record its statistics at every accepted step.

    Args:
        flow: What is followed.
        state: Where it begins.
        equations: How many an implicit step solves at once.
        duration: Final time.
        tolerance: Error of each step.
        max_steps: Number of steps after which the flow is given up.
        work: What the steps cost, and may cost.
        patience: Explicit steps after which a flow of few equations is taken to be stiff.
        solver: "explicit" or "stiff"; if not given, implicit steps once explicit ones turn out to be too many.
        partial: Whether to return what was followed until it is given up rather than raise.

    Returns:
        `time` and each statistic, with the steps along the first axis; and the operations that it took.

    Raises:
        DivergenceError: The solver could not go on, or `max_steps` was reached.
    """
    usual: dict[str, Any] = {"duration": duration, "tolerance": tolerance}
    few = few_equations(equations)
    # Implicit steps for many equations take long, and somebody may look at the clock.
    at_once = _AT_ONCE if few else _AT_ONCE_LARGE
    if solver is None:
        patience = patience if few else _PATIENCE
        worthwhile = work.steps("stiff", max_steps, after=patience) >= _FEWEST
        patient = equations <= _MANY and max_steps > patience and worthwhile
    else:
        patience, patient = 0, solver == "stiff"
    explicit, pieces = 0, []
    reached = 0.0
    if patience or not patient:
        steps = patience if patient else work.steps("explicit", max_steps)
        record, state = follow_by_steps(
            flow,
            state,
            TSITOURAS,
            max_steps=steps,
            partial=partial or patient,
            at_once=_AT_ONCE,
            **usual,
        )
        explicit, reached = len(record["time"]) - 1, float(record["time"][-1])
        pieces = [record]
    implicit = 0
    if patient and reached < duration and not (pieces and overdue()):
        steps = work.steps("stiff", max_steps, after=patience)
        record, _ = follow_by_steps(
            flow,
            state,
            ROSENBROCK,
            start=reached,
            max_steps=steps,
            partial=partial,
            at_once=min(at_once, steps),
            **usual,
        )
        implicit = len(record["time"]) - 1
        # It begins with the state at which the explicit steps ended.
        pieces.append({name: values[1:] for name, values in record.items()} if pieces else record)
    found = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    return found, work.of(explicit=explicit, implicit=implicit)
