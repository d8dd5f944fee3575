"""Choice of the solver of a flow: explicit steps, or linearly implicit steps if the flow is stiff."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from dynascope.flows.deadline import overdue
from dynascope.flows.solvers.adaptive import StiffFlow, integrate_adaptively
from dynascope.flows.solvers.explicit import TSITOURAS
from dynascope.flows.solvers.rosenbrock import ROSENBROCK

__all__ = ["PreparedFlow", "Solver", "Work", "few_equations"]

Solver = Literal["explicit", "stiff"]

# Up to this number of equations, implicit steps are hardly more expensive than explicit ones, and never more numerous.
_FEW = 150
# Above this number of equations, an implicit step takes longer than thousands of explicit ones.
_MANY = 1000
_PATIENCE = 2000  # explicit steps after which a flow with an intermediate number of equations counts as stiff
_FEWEST = 100  # smallest number of implicit steps that is worth starting
_AT_ONCE, _AT_ONCE_LARGE = 256, 32  # steps per call of a compiled program, for few and for many equations
_AT_LEAST = 3e5  # operations that take as long as the overhead of a step


class Work(NamedTuple):
    """Cost of the steps of a flow in floating-point operations, to within a factor of about two.

    Attributes:
        explicit: Number of operations per explicit step.
        implicit: Number of operations per implicit step.
        most: Maximum number of operations.
    """

    explicit: float
    implicit: float
    most: float = math.inf

    def steps(self, solver: Solver, max_steps: int, *, after: int = 0) -> int:
        """Maximum number of steps of a solver, given the number of explicit steps already taken.

        Example:
            >>> Work(1e6, 1e8, most=1e10).steps("stiff", 1000, after=2000)
            80
        """
        left = self.most - after * max(self.explicit, _AT_LEAST)
        each = max(self.explicit if solver == "explicit" else self.implicit, _AT_LEAST)
        return int(min(max_steps, max(left / each, 1.0)))

    def of(self, *, explicit: int, implicit: int) -> float:
        """Cost of a number of steps.

        Example:
            >>> Work(1e6, 1e8).of(explicit=10, implicit=2)
            210000000.0
        """
        return explicit * max(self.explicit, _AT_LEAST) + implicit * max(self.implicit, _AT_LEAST)


class PreparedFlow(NamedTuple):
    """A flow and its initial state.

    Attributes:
        flow: The flow.
        state: Initial state.
        equations: Number of linear equations in an implicit step.
        work: Floating-point operations of the steps.
        patience: Number of explicit steps after which a flow with few equations is treated as stiff.
    """

    flow: StiffFlow
    state: Any
    equations: int
    work: Work
    patience: int = 0

    def solve(
        self,
        *,
        duration: float,
        tolerance: float,
        max_steps: int,
        operations: float | None = None,
        solver: Solver | None = None,
        partial: bool = False,
    ) -> tuple[dict[str, np.ndarray], float]:
        """Integrate the flow with a suitable solver, and record its statistics at every accepted step.

        Args:
            duration: Final time.
            tolerance: Largest allowed error of a step.
            max_steps: Maximum number of steps.
            operations: Maximum number of floating-point operations; None for no limit.
            solver: "explicit" or "stiff". By default, the flow switches to "stiff" if "explicit" takes too many steps.
            partial: Whether to return the trajectory so far, instead of raising an error, if a limit is reached.

        Returns:
            `time` and each statistic, with the steps along the first axis; and the number of operations.

        Raises:
            DivergenceError: If the solver fails or reaches a limit.
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
                record, state = integrate_adaptively(
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
                # Implicit steps for many equations are slow, so check time limits more often.
                at_once = min(_AT_ONCE if few else _AT_ONCE_LARGE, steps)
                record, _ = integrate_adaptively(
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
                # The first state is the last state of the explicit steps.
                pieces.append({name: values[1:] for name, values in record.items()} if pieces else record)
        found = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        return found, work.of(explicit=explicit, implicit=implicit)


def few_equations(equations: int) -> bool:
    """Whether there are so few equations that implicit steps are preferable for any flow.

    Example:
        >>> few_equations(13), few_equations(640)
        (True, False)
    """
    return equations <= _FEW
