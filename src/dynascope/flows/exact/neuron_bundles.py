"""Gradient flow of two-layer linear networks at any initialisation scale, by an exact change of variables."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float

from dynascope.flows.exact.linear_bundles import LinearBundles
from dynascope.flows.solvers.solver_choice import PreparedFlow, Solver, Work
from dynascope.flows.solvers.stepping import Tolerance, require_correlation, resolving
from dynascope.results import make_record
from dynascope.tasks.task import Task
from dynascope.validation import checked, require, require_array
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

__all__ = ["linear_flow", "prepare_bundles"]

_PATIENCE = 500  # explicit steps, which are much cheaper than implicit steps for a small table


def linear_flow(
    task: Task,
    first: Float[np.ndarray, "d width"],
    second: Float[np.ndarray, "width c"],
    *,
    scale: PositiveFloat,
    duration: PositiveFloat,
    points: PositiveInt = 4000,
    tolerance: Tolerance = 1e-9,
    max_steps: PositiveInt = 10_000_000,
    operations: PositiveFloat | None = None,
    solver: Solver | None = None,
    partial: bool = False,
) -> xr.Dataset:
    """Solve the gradient flow of f(x) = x W₁ W₂ from scale·W₁, scale·W₂.

    All neurons θ = (input weights, output weights) satisfy θ' = F θ, where F depends only on the residual Σyx − W Σxx
    of the learned map W. Rotations among the neurons do not change the function, so the solver represents them as
    orthogonal bundles, each with a unit direction and a log-norm. A mode of size 1e-300 then keeps full precision next
    to a mode of size 1. In the original weights, the rounding errors of the large mode would swamp the small one.

    Args:
        task: Inputs and targets.
        first: W₁ before scaling, shape (d, width).
        second: W₂ before scaling, shape (width, c).
        scale: Factor on the initial weights.
        duration: Gradient-flow time at which to stop.
        points: Maximum number of times to return.
        tolerance: Relative and absolute tolerance of each solver step.
        max_steps: Maximum number of steps.
        operations: Maximum number of floating-point operations, counted to within a factor of about two; None for no
            limit.
        solver: "explicit" or "stiff" (linearly implicit, for inputs with very different variances). By default, the
            solver switches to "stiff" if "explicit" takes too many steps.
        partial: Whether to return the trajectory so far, instead of raising an error, if a limit is reached.

    Returns:
        Record with `loss` and `descent_rate` (−dL/dt) over `time`, and `mode_strength` over `time`, `mode`: u_kᵀ Wᵀ v_k
        along the singular vectors of Σyx, strongest first. The attribute `operations` is the estimated number of
        floating-point operations.

    Raises:
        InputError: If shapes do not match, if the initial weights are zero, if the targets are uncorrelated with the
            inputs, or if a number is not positive.
        DivergenceError: If the solver fails or reaches a limit.

    Example:
        >>> task = Task(np.eye(2) * 2**0.5, np.diag([4.0, 1.0]) * 2**0.5)
        >>> curve = linear_flow(task, np.eye(2), np.eye(2), scale=1e-100, duration=300.0)
        >>> curve["mode_strength"].to_numpy()[-1].round(6)
        array([4., 1.])
    """
    record, took = prepare_bundles(task, first, second, scale=scale).solve(
        duration=duration,
        tolerance=tolerance,
        max_steps=max_steps,
        operations=operations,
        solver=solver,
        partial=partial,
    )
    record = resolving(record, points)
    return make_record(
        {
            "loss": (["time"], record["loss"]),
            "descent_rate": (["time"], record["descent_rate"]),
            "mode_strength": (["time", "mode"], record["mode_strength"]),
        },
        {"time": record["time"], "mode": np.arange(1, record["mode_strength"].shape[1] + 1)},
        attributes={"flow": "gradient flow", "variables": "neuron bundles", "scale": scale, "operations": took},
    )


@checked
def prepare_bundles(
    task: Task, first: Float[np.ndarray, "d width"], second: Float[np.ndarray, "width c"], *, scale: PositiveFloat
) -> PreparedFlow:
    """Check the arguments of `linear_flow`, and return its equations and its initial state.

    Raises:
        InputError: Under the same conditions as `linear_flow`.

    Example:
        >>> prepared = prepare_bundles(Task(np.eye(2), np.eye(2)), np.eye(2), np.eye(2), scale=1e-3)
        >>> prepared.equations, prepared.state[0].shape
        (4, (4, 2))
    """
    first = require_array("first", first, (task.input_dimension, None))
    second = require_array("second", second, (first.shape[1], task.output_dimension))
    require_correlation(task)
    # Restrict the inputs to the range of Σxx and diagonalise it; weights outside the range are constant.
    power, basis = np.linalg.eigh(task.input_moment)
    kept = power > 1e-12 * power[-1]
    cross = task.cross_moment @ basis[:, kept]
    left, _, rows = np.linalg.svd(cross, full_matrices=False)
    neurons = np.concatenate([basis[:, kept].T @ first, second.T])
    require(
        bool(np.any(neurons)),
        "the initial weights are zero",
        argument="first",
        value=0.0,
        remedy="use random initial weights",
    )
    if neurons.shape[1] > len(neurons):
        # A rotation reduces the number of non-zero bundles to the number of weights of a neuron.
        neurons = np.asarray(np.linalg.qr(neurons.T, mode="r")).T
    norms = np.linalg.norm(neurons, axis=0)
    alive = norms > 0
    sizes = np.log(norms[alive]) + np.log(scale)
    flow = LinearBundles(cross, power[kept], np.asarray(task.target_power), left, rows.T, sizes)
    work = _work(cross.size, len(neurons), int(alive.sum()))
    return PreparedFlow(flow, (neurons[:, alive] / norms[alive], sizes), cross.size, work, _PATIENCE)


def _work(entries: int, weights: int, bundles: int) -> Work:
    """Operations of an explicit step (learned map and velocity of each bundle) and of an implicit step."""
    implicit = 2 / 3 * entries**3 + 14.0 * (entries**2 + 2.0 * weights**2 * bundles)
    return Work(8 * 6.0 * entries * bundles, implicit)
