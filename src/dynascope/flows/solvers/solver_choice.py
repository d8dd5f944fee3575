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

__all__ = ["Begun", "Solver", "Work", "few_equations"]

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
        """Follow the flow by the solver that suits its stiffness, and record its statistics at every accepted step.

        Args:
            duration: Final time.
            tolerance: Error of each step.
            max_steps: Number of steps after which the flow is given up.
            operations: Floating-point operations after which it is given up too; None for no limit.
            solver: "explicit" or "stiff"; if not given, implicit steps once explicit ones turn out to be too many.
            partial: Whether to return what was followed until it is given up rather than raise.

        Returns:
            `time` and each statistic, with the steps along the first axis; and the operations that it took.

        Raises:
            DivergenceError: The solver could not go on, or `max_steps` was reached.
        """
        work = self.work._replace(most=math.inf if operations is None else float(operations))
        few = few_equations(self.equations)
        if solver is None:
            patience = self.patience if few else _PATIENCE
            worthwhile = work.steps("stiff", max_steps, after=patience) >= _FEWEST
            patient = self.equations <= _MANY and max_steps > patience and worthwhile
        else:
            patience, patient = 0, solver == "stiff"
        usual: dict[str, Any] = {"duration": duration, "tolerance": tolerance}
        state, pieces, reached = self.state, [], 0.0
        explicit, implicit = 0, 0
        with jax.enable_x64(True):
            if patience or not patient:
                steps = patience if patient else work.steps("explicit", max_steps)
                record, state = follow_by_steps(
                    self.flow,
                    state,
                    TSITOURAS,
                    max_steps=steps,
                    partial=partial or patient,
                    at_once=_AT_ONCE,
                    **usual,
                )
                explicit, reached = len(record["time"]) - 1, float(record["time"][-1])
                pieces = [record]
            if patient and reached < duration and not (pieces and overdue()):
                steps = work.steps("stiff", max_steps, after=patience)
                # Implicit steps for many equations take long, and somebody may look at the clock.
                at_once = min(_AT_ONCE if few else _AT_ONCE_LARGE, steps)
                record, _ = follow_by_steps(
                    self.flow,
                    state,
                    ROSENBROCK,
                    start=reached,
                    max_steps=steps,
                    partial=partial,
                    at_once=at_once,
                    **usual,
                )
                implicit = len(record["time"]) - 1
                # It begins with the state at which the explicit steps ended.
                pieces.append({name: values[1:] for name, values in record.items()} if pieces else record)
        found = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        return found, work.of(explicit=explicit, implicit=implicit)


def few_equations(equations: int) -> bool:
    """Whether they are so few that a flow is followed by implicit steps, stiff or not.

    Example:
        >>> few_equations(13), few_equations(640)
        (True, False)
    """
    return equations <= _FEW
