"""Gradient flow of two-layer linear networks at any initialisation scale, by an exact change of variables."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float

from dynascope.flows.exact.linear_bundles import LinearBundles
from dynascope.flows.solvers.solver_choice import Begun, Solver, Work
from dynascope.flows.solvers.stepping import Tolerance, require_correlation, resolving
from dynascope.results import make_record
from dynascope.tasks.task import Task
from dynascope.validation import checked, require, require_array
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

__all__ = ["begin_bundles", "linear_flow"]

_PATIENCE = 500  # explicit steps, which take a fraction of what implicit ones do for a small table


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
    """Train f(x) = x W₁ W₂ by gradient flow from scale·W₁, scale·W₂.

    The neurons θ = (input weights, output weights) all obey θ' = F θ, where F depends only on the residual Σyx − W Σxx
    of the learned map W. Rotating the neurons among themselves changes nothing, so they are kept as orthogonal
    bundles, each a unit direction with a log-norm of its own. A mode of size 1e-300 then keeps all its digits beside
    one of size 1, where the weights themselves would have mixed round-off of the large into the small.

    Args:
        task: Inputs and targets.
        first: W₁ at scale one, shape (d, width).
        second: W₂ at scale one, shape (width, c).
        scale: Factor on the initial weights.
        duration: Gradient-flow time at which to stop.
        points: How many times to keep.
        tolerance: Relative and absolute tolerance of each solver step.
        max_steps: Number of steps after which the flow is given up.
        operations: Floating-point operations after which it is given up too, counted to within a factor of two or so;
            None for no limit.
        solver: "explicit" or "stiff" (linearly implicit, for inputs of very different spreads); if not given, the
            second where the first takes too many steps.
        partial: Whether to return what was followed until a flow is given up for its steps rather than raise.

    Returns:
        Record with `loss` and `descent_rate` (−dL/dt) over `time`, and `mode_strength` over `time`, `mode`: u_kᵀ Wᵀ v_k
        along the singular vectors of Σyx, strongest first; its attribute `operations` says what it took.

    Raises:
        InputError: Shapes that do not fit, initial weights that vanish, targets without correlation with the inputs, or
            a number that is not positive.
        DivergenceError: The solver could not go on, or `max_steps` was reached.

    Example:
        >>> task = Task(np.eye(2) * 2**0.5, np.diag([4.0, 1.0]) * 2**0.5)
        >>> curve = linear_flow(task, np.eye(2), np.eye(2), scale=1e-100, duration=300.0)
        >>> curve["mode_strength"].to_numpy()[-1].round(6)
        array([4., 1.])
    """
    record, took = begin_bundles(task, first, second, scale=scale).follow(
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
def begin_bundles(
    task: Task, first: Float[np.ndarray, "d width"], second: Float[np.ndarray, "width c"], *, scale: PositiveFloat
) -> Begun:
    """What `linear_flow` follows, and from where, checked and set up once for any number of tolerances.

    Raises:
        InputError: As `linear_flow`.

    Example:
        >>> begun = begin_bundles(Task(np.eye(2), np.eye(2)), np.eye(2), np.eye(2), scale=1e-3)
        >>> begun.equations, begun.state[0].shape
        (4, (4, 2))
    """
    first = require_array("first", first, (task.input_dimension, None))
    second = require_array("second", second, (first.shape[1], task.output_dimension))
    require_correlation(task)
    # On its range Σxx becomes diagonal; weights outside see no data and never move.
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
        remedy="start from random ones",
    )
    if neurons.shape[1] > len(neurons):
        # A rotation leaves as many bundles as a neuron has weights, and the others empty.
        neurons = np.asarray(np.linalg.qr(neurons.T, mode="r")).T
    norms = np.linalg.norm(neurons, axis=0)
    alive = norms > 0
    sizes = np.log(norms[alive]) + np.log(scale)
    flow = LinearBundles(cross, power[kept], np.asarray(task.target_power), left, rows.T, sizes)
    work = _work(cross.size, len(neurons), int(alive.sum()))
    return Begun(flow, (neurons[:, alive] / norms[alive], sizes), cross.size, work, _PATIENCE)


def _work(entries: int, weights: int, bundles: int) -> Work:
    """Of a step: the learned map and the pull of each bundle; or what an implicit one solves and multiplies."""
    implicit = 2 / 3 * entries**3 + 14.0 * (entries**2 + 2.0 * weights**2 * bundles)
    return Work(8 * 6.0 * entries * bundles, implicit)
