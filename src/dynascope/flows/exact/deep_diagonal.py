"""Gradient flow of deep diagonal networks at any initialisation scale, by an exact change of variables."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import numpy as np
import xarray as xr
from annotated_types import Ge
from scipy.integrate import solve_ivp

from dynascope.errors import DivergenceError
from dynascope.flows.solvers.stepping import Tolerance, require_correlation, resolving
from dynascope.results import make_record
from dynascope.results.clock import time_unit
from dynascope.tasks.task import Task
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

__all__ = ["deep_diagonal_flow"]

# Jumps last a time of order one, which must exceed the rounding error of times by a factor of a thousand.
_LONGEST = 1.01e12


def deep_diagonal_flow(
    task: Task,
    *,
    depth: Annotated[int, Ge(2)],
    scale: PositiveFloat,
    duration: PositiveFloat,
    points: PositiveInt = 4000,
    tolerance: Tolerance = 1e-8,
) -> xr.Dataset:
    """Solve the gradient flow of f(x) = (u^D − v^D)ᵀ x from u = v = scale·1.

    The flow conserves u^(2−D) + v^(2−D) = 2 scale^(2−D) for D > 2, and u v = scale² for D = 2. The flow therefore
    reduces exactly to d equations for the log-ratios r = log(u/v),

        r' = D (u^(D−2) + v^(D−2)) E[x (y − βᵀx)].

    The log-ratios lose no precision on plateaus near zero or during fast growth. The length of a plateau is
    proportional to a negative power of the initial scale, so the equations are stiff and the solver is implicit.

    Args:
        task: Inputs and one target.
        depth: Depth D ≥ 2.
        scale: Initial value of u and v.
        duration: Gradient-flow time at which to stop.
        points: Maximum number of times to return.
        tolerance: Relative and absolute tolerance of each solver step.

    Returns:
        Record with `loss` and `descent_rate` (−dL/dt) over `time`, and `coefficient` (β) over `time`, `feature`.

    Raises:
        InputError: If there is more than one target, if the target is uncorrelated with the inputs, if the depth is
            below two, if a number is not positive, or if scale^(2−D) exceeds 1e12.
        DivergenceError: If the solver fails.

    Example:
        >>> task = Task(np.eye(2) * 2**0.5, np.array([[4.0], [-1.0]]) * 2**0.5)
        >>> curve = deep_diagonal_flow(task, depth=3, scale=1e-3, duration=800.0)
        >>> curve["coefficient"].to_numpy()[-1].round(6)
        array([ 4., -1.])
    """
    require(
        task.output_dimension == 1,
        f"the task has {task.output_dimension} targets",
        argument="task",
        value=task.output_dimension,
        remedy="choose one target, since a diagonal network has one output",
    )
    require_correlation(task)
    # A time unit in which plateaus, or the whole training, last a time of order one.
    unit = time_unit(scale, degree=depth) if scale < 1 else 1.0
    require(
        unit <= _LONGEST,
        f"scale^(2 − depth) is {unit:.3g}",
        argument="scale",
        value=scale,
        remedy=f"choose a larger scale, because rounding can hide jumps if scale^(2 − depth) exceeds {_LONGEST:.0e}",
    )
    unit = min(unit, float(duration))
    flow = _Ratios(task, depth, float(np.log(scale)), unit)
    # Trial steps can overflow; the solver then rejects them.
    with np.errstate(over="ignore", invalid="ignore"):
        solution = solve_ivp(
            lambda _, ratio: flow.velocity(ratio),
            (0.0, duration / unit),
            np.zeros(task.input_dimension),
            "LSODA",
            jac=lambda _, ratio: flow.jacobian(ratio),
            rtol=tolerance,
            atol=tolerance,
        )
    time = unit * solution.t
    record = {"time": time, **flow.statistics(solution.y.T)}
    if solution.status != 0 or not np.isfinite(record["loss"]).all():
        raise DivergenceError(
            f"the solver failed at time {time[-1]:.6g}",
            time=float(time[-1]),
            remedy="check the data for extreme values, shorten the duration, or choose a larger scale",
        )
    record = resolving(record, points)
    return make_record(
        {
            "loss": (["time"], record["loss"]),
            "descent_rate": (["time"], record["descent_rate"]),
            "coefficient": (["time", "feature"], record["coefficient"]),
        },
        {"time": record["time"], "feature": list(task.feature_names)},
        attributes={"flow": "gradient flow", "variables": "log-ratios", "scale": scale, "depth": depth},
    )


@dataclasses.dataclass(frozen=True)
class _Ratios:
    """The flow of r = log(u/v) in the given time unit."""

    task: Task
    depth: int
    log_scale: float
    unit: float

    def _log_weights(self, ratio):
        size = np.abs(ratio)
        # The smaller weight v satisfies v^(D−2) = scale^(D−2) (1 + (v/u)^(D−2))/2; for D = 2, v = scale (v/u)^(1/2).
        if self.depth == 2:
            smaller = self.log_scale - size / 2
        else:
            decay = np.log1p(np.exp(-(self.depth - 2) * size)) - np.log(2)
            smaller = self.log_scale + decay / (self.depth - 2)
        larger = smaller + size
        return np.stack([np.where(ratio > 0, larger, smaller), np.where(ratio > 0, smaller, larger)])

    def _state(self, ratio):
        """Compute β, −∂L/∂β, and the stacked log u and log v."""
        logs = self._log_weights(ratio)
        u, v = np.exp(self.depth * logs)
        return u - v, self.task.cross_moment[0] - (u - v) @ self.task.input_moment, logs

    def velocity(self, ratio):
        _, slope, logs = self._state(ratio)
        return self.unit * self.depth * slope * np.exp((self.depth - 2) * logs).sum(axis=0)

    def jacobian(self, ratio):
        depth = self.depth
        _, slope, logs = self._state(ratio)
        (u, v), (slow_u, slow_v) = np.exp(depth * logs), np.exp((depth - 2) * logs)
        # d log u/dr = u^(D−2)/(u^(D−2) + v^(D−2)) = 1 + d log v/dr, because u^(2−D) + v^(2−D) is conserved.
        share = slow_u / (slow_u + slow_v)
        beta = depth * (u * share + v * (1 - share))
        pace = (depth - 2) * (slow_u * share - slow_v * (1 - share))
        return self.unit * depth * (np.diag(slope * pace) - (slow_u + slow_v)[:, None] * self.task.input_moment * beta)

    def statistics(self, ratios):
        beta, slope, logs = self._state(ratios)
        # L = ½ E y² − ½ βᵀ(Σxy + slope), with ‖∇L‖² = D² Σ slope² (u^(2D−2) + v^(2D−2)).
        loss = (self.task.target_power - np.sum(beta * (self.task.cross_moment[0] + slope), axis=1)) / 2
        squares = np.exp(2 * (self.depth - 1) * logs).sum(axis=0)
        return {
            "loss": np.maximum(loss, 0.0),
            "descent_rate": self.depth**2 * np.sum(slope**2 * squares, axis=1),
            "coefficient": beta,
        }
