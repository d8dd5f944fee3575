"""Gradient flow of homogeneous neurons in polar form: a direction and a log-norm for each."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import Array
from jaxtyping import Float

from dynascope.compilation import filter_jit
from dynascope.errors import DivergenceError
from dynascope.flows.deadline import overdue
from dynascope.flows.exact.stiff_neurons import Neurons, StiffNeurons, work_of_a_step
from dynascope.flows.progress import report_time
from dynascope.flows.solvers.adaptive import follow_by_steps
from dynascope.flows.solvers.rosenbrock import ROSENBROCK
from dynascope.flows.solvers.solver_choice import Solver, Work
from dynascope.flows.solvers.stepping import Tolerance, resolving
from dynascope.protocols import SumOfNeurons
from dynascope.results import make_record
from dynascope.tasks.task import Task
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

__all__ = ["polar_flow"]

_AT_ONCE = 512  # steps in one call of the program
_FIRST_MOTION = 0.05  # of a log-norm, in the first step
_SHORTEST = 1e-13  # of the duration
# The pair of Bogacki and Shampine, of orders three and two, in which the last stage is the first of the next step.
_STAGES = ((1 / 2,), (0.0, 3 / 4), (2 / 9, 1 / 3, 4 / 9))
_FOLLOWED = ("time", "loss", "descent_rate")
_ERROR = (2 / 9 - 7 / 24, 1 / 3 - 1 / 4, 4 / 9 - 1 / 3, -1 / 8)


class _State(NamedTuple):
    """Where a flow is.

    Attributes:
        time: Gradient-flow time.
        step: The next step to try.
        directions: Unit rows.
        log_norms: Of each neuron.
        turning: Velocity of the directions.
        growth: Of the log-norms.
        loss: L = ½ E‖f(x) − y‖².
        descent_rate: −dL/dt.
    """

    time: Array
    step: Array
    directions: Float[Array, "neurons weights"]
    log_norms: Float[Array, " neurons"]
    turning: Float[Array, "neurons weights"]
    growth: Float[Array, " neurons"]
    loss: Array
    descent_rate: Array


def polar_flow(
    task: Task,
    network: Annotated[SumOfNeurons, "a sum of neurons of degree two or more, as TwoLayer is"],
    *,
    scale: PositiveFloat,
    duration: PositiveFloat,
    tolerance: Tolerance = 3e-3,
    normalised: bool = False,
    points: PositiveInt = 4000,
    max_steps: PositiveInt = 200_000,
    operations: PositiveFloat | None = None,
    solver: Solver | None = None,
    partial: bool = False,
) -> xr.Dataset:
    """Train a sum of homogeneous neurons by gradient flow from scale·θ, each neuron as a direction and a log-norm.

    With θ_i = e^{l_i} u_i and ‖u_i‖ = 1, and g_i the gradient of E⟨f_i(x; u), y − f(x)⟩ at u = u_i,

        l_i' = e^{(κ−2) l_i} u_i·g_i        u_i' = e^{(κ−2) l_i} (g_i − (u_i·g_i) u_i).

    A small neuron turns and grows as fast as a large one, so the error of a step is the root mean square over all
    neurons of the change in direction and log-norm that it gets wrong, and a start of any scale is followed as well as
    any other. Where a ReLU neuron switches a sample on or off the velocity jumps; nothing is done about it, as at
    tolerances of a thousandth and above such jumps are no longer what limits a step.

    Args:
        network: A sum of neurons of degree κ two or more, with its weights at unit scale.
        task: Inputs and targets.
        scale: Factor on the weights at the start.
        duration: Gradient-flow time at which to stop.
        tolerance: Error of a step in direction (radians) and log-norm.
        normalised: Whether to follow the homogeneity-normalised flow, in which e^{(κ−2) l_i} is one.
        points: How many times to keep.
        max_steps: Number of steps after which the flow is given up.
        operations: Floating-point operations after which it is given up too, counted to within a factor of two or so;
            None for no limit.
        solver: "explicit" or "stiff" (linearly implicit, for smooth neurons); if not given, the second above degree
            two, where large neurons have long settled when small ones begin to move.
        partial: Whether to return what was followed until a flow is given up for its steps rather than raise.

    Returns:
        Record with `loss` and `descent_rate` (−dL/dt) over `time`; its attribute `operations` says what it took.

    Raises:
        InputError: The network is no sum of neurons of degree two or more, a neuron starts at zero, or a number is not
            positive.
        DivergenceError: The steps became too small, or `max_steps` was reached.

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
        remedy="give a sum of neurons of degree two or more, as TwoLayer is",
    )
    rows = np.asarray(network.neurons, np.float64)
    norms = np.linalg.norm(rows, axis=1)
    require(
        bool(np.all(norms > 0) and np.isfinite(norms).all()),
        "a neuron starts at zero or is not finite",
        argument="network",
        value=float(norms.min()),
        remedy="start every neuron away from zero",
    )
    with jax.enable_x64(True):
        frame = jax.tree.map(
            lambda leaf: jax.device_put(np.asarray(leaf, float)) if eqx.is_inexact_array(leaf) else leaf, network
        )
        data = {"inputs": task.inputs, "targets": task.targets, "normalised": np.asarray(float(normalised))}
        numbers = {"duration": np.asarray(float(duration)), "tolerance": np.asarray(float(tolerance))}
        start = jax.device_put(Neurons(rows / norms[:, None], np.log(norms) + np.log(scale)))
        implicit: Solver = "stiff" if network.degree > 2 and not normalised else "explicit"
        solver = solver or implicit
        work = _work(network, task, operations)
        max_steps = work.steps(solver, max_steps)
        if solver == "stiff":
            flow = StiffNeurons(frame, task.inputs, task.targets)
            path, _ = follow_by_steps(
                flow, start, ROSENBROCK, duration=duration, tolerance=tolerance, max_steps=max_steps, partial=partial
            )
        else:
            path = _explicitly(frame, data, _begun(frame, data, *start, numbers), numbers, max_steps, partial)
    steps = {"explicit": 0, "implicit": 0, "implicit" if solver == "stiff" else "explicit": len(path["time"]) - 1}
    record = resolving(path, points)
    return make_record(
        {name: (["time"], record[name]) for name in ("loss", "descent_rate")},
        {"time": record["time"]},
        attributes={
            "flow": "homogeneity-normalised gradient flow" if normalised else "gradient flow",
            "variables": "directions and log-norms",
            "scale": scale,
            "tolerance": tolerance,
            "operations": work.of(**steps),
        },
    )


def _work(network: SumOfNeurons, task: Task, most: float | None) -> Work:
    """Of a step: four velocities, each with a slope of the outputs; or what implicit steps take."""
    implicit = work_of_a_step(task, network) if isinstance(task, Task) else 0.0
    explicit = 24.0 * np.size(network.neurons) * len(task.inputs)
    return Work(explicit, implicit, np.inf if most is None else float(most))


def _explicitly(
    frame: Any, data: Any, state: _State, numbers: Any, max_steps: int, partial: bool
) -> dict[str, np.ndarray]:
    """What is followed, after every accepted step."""
    pieces = [{name: np.array([float(getattr(state, name))]) for name in _FOLLOWED}]
    duration, steps = float(numbers["duration"]), 0
    while float(state.time) < duration:
        before = float(state.time)
        state, path = jax.device_get(_advanced(frame, data, state, numbers))
        taken = np.isfinite(path["time"])
        pieces.append({name: values[taken] for name, values in path.items()})
        steps += int(taken.sum())
        if steps > max_steps and partial:
            break
        _require_progress(before, state, steps, max_steps)
        report_time(float(state.time), duration, steps, max_steps if partial else None)
        if overdue():
            break
    return {name: np.concatenate([each[name] for each in pieces]) for name in _FOLLOWED}


def _require_progress(before: float, state: _State, steps: int, max_steps: int) -> None:
    now = float(state.time)
    stuck = now <= before or not np.isfinite(float(state.loss))
    if stuck or steps > max_steps:
        problem = "the step size underflowed" if stuck else f"max_steps ({max_steps}) was reached"
        remedy = "check the data for extreme values" if stuck else "raise max_steps, or standardise the inputs"
        raise DivergenceError(
            f"{problem} at time {before:.6g}", time=before, remedy=f"{remedy}, or shorten the duration"
        )


@filter_jit
def _begun(frame: Any, data: Any, directions: Any, log_norms: Any, numbers: Any) -> _State:
    turning, growth, *losses = _velocity(frame, data, jnp.asarray(directions), jnp.asarray(log_norms))
    fastest = jnp.max(jnp.abs(growth))
    step = jnp.where(fastest > 0, _FIRST_MOTION / fastest, numbers["duration"])
    return _State(jnp.zeros(()), step, jnp.asarray(directions), jnp.asarray(log_norms), turning, growth, *losses)


@filter_jit
def _advanced(frame: Any, data: Any, state: _State, numbers: Any) -> tuple[_State, dict[str, Array]]:
    """The state some accepted steps later, and what is followed at the end of each; NaN where none was needed."""
    duration, tolerance = numbers["duration"], numbers["tolerance"]

    def moved(state: _State, step: Array, weights: Any, stages: Any) -> tuple[Array, Array]:
        turned = sum(weight * turning for weight, (turning, _) in zip(weights, stages, strict=False))
        grown = sum(weight * growth for weight, (_, growth) in zip(weights, stages, strict=False))
        return state.directions + step * turned, state.log_norms + step * grown

    def tried(state: _State) -> _State:
        step = jnp.minimum(state.step, duration - state.time)
        stages = [(state.turning, state.growth)]
        for weights in _STAGES:
            directions, log_norms = moved(state, step, weights, stages)
            turning, growth, *losses = _velocity(frame, data, directions, log_norms)
            stages.append((turning, growth))
        wrong = [sum(weight * stage[k] for weight, stage in zip(_ERROR, stages, strict=True)) for k in (0, 1)]
        error = step * jnp.sqrt(jnp.mean(jnp.sum(wrong[0] ** 2, axis=1) + wrong[1] ** 2)) / tolerance
        error = jnp.where(jnp.isfinite(error), error, jnp.inf)
        accepted = (error <= 1) | (step <= _SHORTEST * duration)
        factor = jnp.clip(0.9 * jnp.maximum(error, 1e-6) ** (-1 / 3), 0.2, 4.0)
        norms = jnp.linalg.norm(directions, axis=1, keepdims=True)
        # Rounding must not leave a last step too small to be taken.
        time = jnp.where(duration - state.time - step <= _SHORTEST * duration, duration, state.time + step)
        after = _State(time, step * factor, directions / norms, log_norms, turning, growth, *losses)
        return jax.tree.map(lambda new, old: jnp.where(accepted, new, old), after, state)._replace(step=step * factor)

    def another(carry: Any) -> Any:
        state, path, count = carry
        after = tried(state)
        taken = after.time > state.time
        path = {
            name: values.at[count].set(jnp.where(taken, getattr(after, name), values[count]))
            for name, values in path.items()
        }
        return after, path, count + taken

    def unfinished(carry: Any) -> Array:
        state, _, count = carry
        return (count < _AT_ONCE) & (state.time < duration) & (state.step > 0)

    path = {name: jnp.full(_AT_ONCE, jnp.nan) for name in _FOLLOWED}
    state, path, _ = jax.lax.while_loop(unfinished, another, (state, path, 0))
    return state, path


def _velocity(frame: Any, data: Any, directions: Array, log_norms: Array) -> tuple[Array, Array, Array, Array]:
    """How fast directions turn and log-norms grow, the loss, and how fast it falls."""
    inputs, targets, degree = data["inputs"], data["targets"], frame.degree
    _, pull = jax.vjp(lambda rows: frame.with_neurons(rows)(inputs), directions)
    residual = targets - frame.with_neurons(directions).weighted(jnp.exp(degree * log_norms))(inputs)
    (gradient,) = pull(residual / len(inputs))
    growth = jnp.sum(directions * gradient, axis=1)
    rate = jnp.exp((1 - data["normalised"]) * (degree - 2) * log_norms)
    turning = rate[:, None] * (gradient - growth[:, None] * directions)
    # ‖θ_i‖ moves by e^{l} times the rate, against a gradient of e^{(κ−1) l} g.
    descent_rate = jnp.sum(rate * jnp.exp(degree * log_norms) * jnp.sum(gradient**2, axis=1))
    return turning, rate * growth, jnp.sum(residual**2) / (2 * len(inputs)), descent_rate
