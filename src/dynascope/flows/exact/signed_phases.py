"""Gradient flow of diagonal linear networks at any initialisation scale, by an exact change of variables."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from dynascope.arguments import require, require_count, require_positive
from dynascope.flows.solvers.stepping import follow, require_correlation, resolving
from dynascope.record import make_record
from dynascope.tasks.task import Task

__all__ = ["diagonal_flow"]


def diagonal_flow(
    task: Task,
    *,
    scale: float,
    duration: float,
    points: int = 4000,
    tolerance: float = 1e-9,
    max_steps: int = 10_000_000,
) -> xr.Dataset:
    """Train f(x) = (u ⊙ v)ᵀ x by gradient flow from u = scale·1, v = 0.

    With G the integral of −∂L/∂β, the weights are u ± v = scale·exp(±G), so that β = (scale²/2) sinh 2G and the flow is
    exactly the d-dimensional equation G' = E[x (y − βᵀx)]. Its solution stays of order log(1/scale), so a start of
    1e-300 costs no precision.

    Args:
        task: Inputs and one target.
        scale: Initial value of u.
        duration: Gradient-flow time at which to stop.
        points: How many times to keep.
        tolerance: Relative and absolute tolerance of each solver step.
        max_steps: Number of steps after which the flow is given up.

    Returns:
        Record with `loss` and `descent_rate` (−dL/dt) over `time`, and `coefficient` (β) over `time`, `feature`.

    Raises:
        InputError: More than one target, a target without correlation with the inputs, or a number that is not
            positive.
        DivergenceError: The solver could not go on, or `max_steps` was reached.

    Example:
        >>> task = Task(np.eye(2) * 2**0.5, np.array([[4.0], [-1.0]]) * 2**0.5)
        >>> curve = diagonal_flow(task, scale=1e-100, duration=600.0)
        >>> curve["coefficient"].to_numpy()[-1].round(6)
        array([ 4., -1.])
    """
    require(
        task.output_dimension == 1,
        f"the task has {task.output_dimension} targets",
        argument="task",
        value=task.output_dimension,
        remedy="a diagonal linear network has one output, so choose one target",
    )
    require_positive(scale=scale, duration=duration, tolerance=tolerance)
    require_count(points=points, max_steps=max_steps)
    require_correlation(task)
    cross = task.cross_moment[0]
    with jax.enable_x64(True):
        arguments = {
            "gram": task.input_moment,
            "cross": cross,
            "power": np.asarray(task.target_power),
            "log_scale": np.asarray(np.log(scale)),
        }
        record = follow(
            _phase_velocity,
            _statistics,
            _unchanged,
            np.zeros(len(cross)),
            arguments,
            duration=duration,
            # Within one step the exponent of a growing coefficient may change by two at the start and less later.
            longest_step=1 / float(np.abs(cross).max()),
            restart_every=4096,
            tolerance=tolerance,
            max_steps=max_steps,
        )
    record = resolving(record, points)
    return make_record(
        {
            "loss": (["time"], record["loss"]),
            "descent_rate": (["time"], record["descent_rate"]),
            "coefficient": (["time", "feature"], record["coefficient"]),
        },
        {"time": record["time"], "feature": list(task.feature_names)},
        attributes={"flow": "gradient flow", "variables": "signed phases", "scale": scale},
    )


def _coefficient(phase, log_scale):
    grown = jnp.exp(2 * (log_scale + jnp.abs(phase)))
    shrunk = jnp.exp(2 * (log_scale - jnp.abs(phase)))
    return jnp.sign(phase) * (grown - shrunk) / 4, (grown + shrunk) / 2


def _phase_velocity(_, phase, arguments):
    beta, _ = _coefficient(phase, arguments["log_scale"])
    return arguments["cross"] - arguments["gram"] @ beta


def _statistics(time, phase, arguments):
    beta, squared_norm = _coefficient(phase, arguments["log_scale"])
    slope = _phase_velocity(time, phase, arguments)
    # L = ½ E y² − ½ βᵀ(Σxy + slope), with ‖∇L‖² = Σ slope² (u² + v²).
    loss = (arguments["power"] - beta @ (arguments["cross"] + slope)) / 2
    return {
        "loss": jnp.maximum(loss, 0.0),
        "descent_rate": jnp.sum(slope**2 * squared_norm),
        "coefficient": beta,
    }


def _unchanged(phase):
    return phase
