"""Which solver follows a flow: explicit steps where they suffice, linearly implicit ones where it is stiff."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from dynascope.arguments import require_choice
from dynascope.flows.solvers.rosenbrock import StiffFlow, follow_stiffly
from dynascope.flows.solvers.stepping import follow

__all__ = ["Solver", "Work", "few_equations", "follow_by_stiffness"]

Solver = Literal["explicit", "stiff"]

# Up to so many equations an implicit step costs hardly more than an explicit one, and there are never more of them.
_FEW = 150
# Beyond so many it takes longer than thousands of explicit ones.
_MANY = 1000
_PATIENCE = 2000  # explicit steps, after which a flow of a number of equations between these is taken to be stiff
_FEWEST = 100  # implicit steps that are worth being begun
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
    vector_field: Callable,
    renewed: Callable,
    *,
    equations: int,
    duration: float,
    longest_step: float,
    restart_every: int,
    tolerance: float,
    max_steps: int,
    work: Work,
    solver: Solver | None = None,
    partial: bool = False,
) -> tuple[dict[str, np.ndarray], float]:
    """Follow a flow by the solver that its stiffness asks for, and record its statistics at every accepted step.

    Args:
        flow: What is followed.
        state: Where it begins.
        vector_field: Velocity of the state, a function of (t, state, flow).
        renewed: As of `solvers.stepping.follow`.
        equations: How many an implicit step solves at once.
        duration: Final time.
        longest_step: Upper bound on an explicit step.
        restart_every: Explicit steps between two restarts.
        tolerance: Error of each step.
        max_steps: Number of steps after which the flow is given up.
        work: What the steps cost, and may cost.
        solver: "explicit" or "stiff"; if not given, implicit steps for few equations, and otherwise once explicit ones
            turn out to be too many.
        partial: Whether to return what was followed until it is given up rather than raise.

    Returns:
        `time` and each statistic, with the steps along the first axis; and the operations that it took.

    Raises:
        DivergenceError: The solver could not go on, or `max_steps` was reached.
    """
    require_choice("solver", solver or "stiff", ("explicit", "stiff"))

    implicit = 0

    def stiffly(state: Any, start: float, after: int = _PATIENCE) -> dict[str, np.ndarray]:
        nonlocal implicit
        steps = work.steps("stiff", max_steps, after=after)
        found = follow_stiffly(
            flow, state, duration=duration, tolerance=tolerance, start=start, max_steps=steps, partial=partial
        )
        implicit = len(found["time"]) - 1
        return found

    if solver == "stiff" or (solver is None and few_equations(equations)):
        return stiffly(state, 0.0, 0), work.of(explicit=0, implicit=implicit)
    patient = solver is None and equations <= _MANY and max_steps > _PATIENCE
    patient = patient and work.steps("stiff", max_steps, after=_PATIENCE) >= _FEWEST
    steps = _PATIENCE if patient else work.steps("explicit", max_steps)
    found = follow(
        vector_field,
        _statistics,
        renewed,
        state,
        flow,
        duration=duration,
        longest_step=longest_step,
        restart_every=restart_every,
        tolerance=tolerance,
        max_steps=steps,
        beyond=stiffly if patient else None,
        partial=partial,
    )
    return found, work.of(explicit=len(found["time"]) - 1 - implicit, implicit=implicit)


def _statistics(_: Any, state: Any, flow: StiffFlow) -> dict[str, Any]:
    return flow.statistics(state)
