"""Gradient flow of homogeneous neurons in polar coordinates: directions and log-norms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import equinox as eqx
import jax
import numpy as np
import xarray as xr

from dynascope.compilation import filter_jit
from dynascope.flows.exact.polar_steps import ExplicitNeurons, ImplicitNeurons
from dynascope.flows.exact.stiff_neurons import Neurons, work_of_a_step
from dynascope.flows.objective import Statistics, check_statistics
from dynascope.flows.recorded_curves import axis_labels, curve_variables
from dynascope.flows.save_times import SaveTimes, recorded_times
from dynascope.flows.solvers.solver_choice import Solver, Work
from dynascope.flows.solvers.stepping import Tolerance, resolving
from dynascope.networks.biased_two_layer import BiasedTwoLayer
from dynascope.protocols import SumOfNeurons
from dynascope.results import make_record
from dynascope.tasks.task import Task
from dynascope.validation import require
from dynascope.validation.bounded_scalars import NonNegativeFloat, PositiveFloat, PositiveInt

__all__ = ["polar_flow"]

_TIMES = 200  # recorded by default with statistics
_STOPS = 100  # times at which the loss is compared with its limit by default


def polar_flow(
    task: Task,
    network: Annotated[SumOfNeurons, "a sum of neurons of degree two or more, such as TwoLayer"],
    *,
    scale: PositiveFloat,
    duration: PositiveFloat,
    until: NonNegativeFloat = 0.0,
    tolerance: Tolerance = 3e-3,
    normalised: bool = False,
    save: SaveTimes | None = None,
    statistics: Mapping[str, tuple[Callable[[Any], Any], Sequence[str]]] | None = None,
    points: PositiveInt = 4000,
    max_steps: PositiveInt = 200_000,
    operations: PositiveFloat | None = None,
    solver: Solver | None = None,
    partial: bool = False,
) -> xr.Dataset:
    """Solve the gradient flow of a sum of homogeneous neurons from scale·θ in polar coordinates.

    With θ_i = e^{l_i} u_i, ‖u_i‖ = 1, and the gradient g_i of E⟨f_i(x; u), y − f(x)⟩ at u = u_i,

        l_i' = e^{(κ−2) l_i} u_i·g_i        u_i' = e^{(κ−2) l_i} (g_i − (u_i·g_i) u_i).

    An output bias, as in `networks.BiasedTwoLayer`, is integrated together with the neurons.

    The error of a step is the root mean square error of the directions and log-norms of all neurons, so the accuracy
    does not depend on the scale. The velocity is discontinuous when a ReLU neuron becomes active or inactive on a
    sample. The solver does not locate these discontinuities, because they do not limit the step size at tolerances of
    1e-3 and above. If the layers have very different norms, choose a smaller tolerance: the direction of a neuron with
    ‖w‖ = 0.01 |a| is almost constant, even if w turns around.

    The input weights w of a ReLU neuron can reach zero and remain there until the residuals have changed. If the neuron
    can then grow in several directions, the gradient flow is not unique, and the error of the solver selects one of
    them. Quantities that depend on activation patterns, such as the NTK, are undefined at w = 0.

    Args:
        network: A sum of neurons of degree κ ≥ 2, with its weights at unit scale.
        task: Inputs and targets.
        scale: Factor on the initial weights.
        duration: Gradient-flow time at which to stop.
        until: Fraction of the initial loss at which to stop earlier, at the next recorded time. A network that has
            learned its task hardly moves, but stability limits the steps, so that most of the work can come afterwards.
        tolerance: Error of a step, in the direction (radians) and in the log-norm.
        normalised: Whether to solve the homogeneity-normalised flow, in which e^{(κ−2) l_i} is replaced by one.
        save: Number of recorded times, equally spaced from 0 to the duration, or the times themselves. A step ends at
            each of these times. By default, times are chosen so that every drop of the loss is resolved; with
            `statistics`, the default is 200 equally spaced times.
        statistics: Additional quantities to record, as in `GradientFlow`: name → (JAX function of the network, names of
            the dimensions of its value).
        points: Maximum number of times to return without `save` and `statistics`.
        max_steps: Maximum number of steps.
        operations: Maximum number of floating-point operations, counted to within a factor of about two; None for no
            limit.
        solver: "explicit" or "stiff" (linearly implicit, for smooth neurons without an output bias). The default is
            "stiff" for degrees above two, because large neurons then converge long before small neurons begin to move.
        partial: Whether to return the trajectory so far, instead of raising an error, if a limit is reached.

    Returns:
        Record with `loss`, `descent_rate` (−dL/dt) and each statistic over `time`. If a limit is
        reached with `partial`, the last time is that of the limit. The attribute `operations` is the estimated number
        of floating-point operations.

    Raises:
        InputError: If the network is not a sum of neurons of degree two or more, if the initial weights of a neuron are
            zero or not finite, if a number is not positive, if the times are not increasing between 0 and the duration,
            or if a statistic is invalid.
        DivergenceError: If the step size underflows or a limit is reached.

    Example:
        >>> from dynascope.networks import TwoLayer
        >>> task = Task(np.diag([1.0, 1.2, 0.9, 1.1]), [[1.5], [1.0], [-0.8], [-0.9]])
        >>> curve = polar_flow(task, TwoLayer(4, 12, 1, activation="relu"), scale=1e-5, duration=100.0)
        >>> [round(float(loss), 2) for loss in curve["loss"].interp(time=[0.0, 30.0, 100.0])]
        [0.59, 0.18, 0.0]
    """
    require(
        network.degree >= 2,
        f"the neurons of the network have degree {network.degree}",
        argument="network",
        value=network.degree,
        remedy="give a sum of neurons of degree two or more, such as TwoLayer",
    )
    rows = np.asarray(network.neurons, np.float64)
    norms = np.linalg.norm(rows, axis=1)
    require(
        bool(np.all(norms > 0) and np.isfinite(norms).all()),
        "the initial weights of a neuron are zero or not finite",
        argument="network",
        value=float(norms.min()),
        remedy="give finite, non-zero initial weights for every neuron",
    )
    chosen = check_statistics(statistics)
    times = recorded_times(_TIMES if save is None else save, duration) if chosen or save is not None else None
    biased = isinstance(network, BiasedTwoLayer) and network.bias is not None
    implicit: Solver = "stiff" if network.degree > 2 and not (normalised or biased) else "explicit"
    solver = solver or implicit
    require(
        solver == "explicit" or not biased,
        "the stiff solver does not support an output bias",
        argument="solver",
        value=solver,
        remedy='choose "explicit"',
    )
    work = _work(network, task, operations)
    with jax.enable_x64(True):
        frame = jax.tree.map(
            lambda leaf: jax.device_put(np.asarray(leaf, float)) if eqx.is_inexact_array(leaf) else leaf, network
        )
        start = jax.device_put(Neurons(rows / norms[:, None], np.log(norms) + np.log(scale)))
        bias = scale * np.asarray(frame.bias) if biased else None
        bare = eqx.tree_at(lambda each: each.bias, frame, None) if biased else frame
        numbers = {"duration": duration, "tolerance": tolerance}
        if solver == "stiff":
            flow: Any = ImplicitNeurons(bare, task, start, **numbers)
        else:
            flow = ExplicitNeurons(bare, task, start, bias, normalised=normalised, **numbers)
        limits = {"max_steps": work.steps(solver, max_steps), "partial": partial}
        lowest = until * float(flow.now["loss"])
        if times is None:
            for time in np.linspace(0, duration, _STOPS + 1)[1:] if until else [duration]:
                flow.advance(time, **limits)
                if flow.now["time"] < time or flow.now["loss"] <= lowest:
                    break
            record = resolving(flow.path, points)
        else:
            record = _recorded(flow, frame, times, chosen, lowest, limits)
    steps = {"explicit": 0, "implicit": 0, "implicit" if solver == "stiff" else "explicit": flow.steps}
    attributes = {
        "flow": "homogeneity-normalised gradient flow" if normalised else "gradient flow",
        "variables": "directions and log-norms",
        "scale": scale,
        "tolerance": tolerance,
        "operations": work.of(**steps),
    }
    curves = {name: values for name, values in record.items() if name != "time"}
    variables = curve_variables(curves, ("time",), {name: axes for name, _, axes in chosen})
    labels = axis_labels(task, variables) | {"time": record["time"]}
    return make_record(variables, labels, attributes=attributes)


def _recorded(
    flow: Any, frame: Any, times: np.ndarray, statistics: Statistics, lowest: float, limits: dict[str, Any]
) -> dict[str, np.ndarray]:
    """Integrate to each of the times until the loss is low enough, and return quantities and statistics."""
    found: list[dict[str, Any]] = []
    for time in times:
        flow.advance(time, **limits)
        now = flow.now
        if found and now["time"] <= found[-1]["time"]:
            break
        found.append(now | (jax.device_get(_measured(frame, *flow.weights, statistics)) if statistics else {}))
        if now["time"] < time or now["loss"] <= lowest:  # a limit was reached
            break
    return {name: np.stack([each[name] for each in found]) for name in found[0]}


@filter_jit
def _measured(frame: Any, rows: Any, bias: Any, statistics: Statistics) -> dict[str, Any]:
    network = frame.with_neurons(rows)
    if isinstance(network, BiasedTwoLayer) and network.bias is not None:
        network = eqx.tree_at(lambda each: each.bias, network, bias)
    return {name: function(network) for name, function, _ in statistics}


def _work(network: SumOfNeurons, task: Task, most: float | None) -> Work:
    """Return the number of operations per explicit step (four velocities and output derivatives) and implicit step."""
    implicit = work_of_a_step(task, network) if isinstance(task, Task) else 0.0
    explicit = 24.0 * np.size(network.neurons) * len(task.inputs)
    return Work(explicit, implicit, np.inf if most is None else float(most))
