"""Which solver follows a flow: explicit steps where they suffice, linearly implicit ones where it is stiff."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from dynascope.arguments import require_choice
from dynascope.flows.solvers.rosenbrock import StiffFlow, follow_stiffly
from dynascope.flows.solvers.stepping import follow

__all__ = ["Solver", "few_equations", "follow_by_stiffness"]

Solver = Literal["explicit", "stiff"]

# Up to so many equations an implicit step costs hardly more than an explicit one, and there are never more of them.
_FEW = 150
# Beyond so many it takes longer than thousands of explicit ones.
_MANY = 1000
_PATIENCE = 2000  # explicit steps, after which a flow of a number of equations between these is taken to be stiff


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
    solver: Solver | None = None,
    partial: bool = False,
) -> dict[str, np.ndarray]:
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
        solver: "explicit" or "stiff"; if not given, implicit steps for few equations, and otherwise once explicit ones
            turn out to be too many.
        partial: Whether to return what was followed until it is given up rather than raise.

    Returns:
        `time` and each statistic, with the steps along the first axis.

    Raises:
        DivergenceError: The solver could not go on, or `max_steps` was reached.
    """
    require_choice("solver", solver or "stiff", ("explicit", "stiff"))

    def stiffly(state: Any, start: float) -> dict[str, np.ndarray]:
        return follow_stiffly(
            flow, state, duration=duration, tolerance=tolerance, start=start, max_steps=max_steps, partial=partial
        )

    if solver == "stiff" or (solver is None and few_equations(equations)):
        return stiffly(state, 0.0)
    patient = solver is None and equations <= _MANY and max_steps > _PATIENCE
    return follow(
        vector_field,
        _statistics,
        renewed,
        state,
        flow,
        duration=duration,
        longest_step=longest_step,
        restart_every=restart_every,
        tolerance=tolerance,
        max_steps=_PATIENCE if patient else max_steps,
        beyond=stiffly if patient else None,
        partial=partial,
    )


def _statistics(_: Any, state: Any, flow: StiffFlow) -> dict[str, Any]:
    return flow.statistics(state)
