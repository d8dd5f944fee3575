"""Gradient flow of homogeneous neurons in polar coordinates: directions and log-norms."""

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
from dynascope.flows.solvers.adaptive import integrate_adaptively
from dynascope.flows.solvers.rosenbrock import ROSENBROCK
from dynascope.flows.solvers.solver_choice import Solver, Work
from dynascope.flows.solvers.stepping import Tolerance, resolving
from dynascope.networks.biased_two_layer import BiasedTwoLayer
from dynascope.protocols import SumOfNeurons
from dynascope.results import make_record
from dynascope.tasks.task import Task
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

__all__ = ["polar_flow"]

_AT_ONCE = 512  # steps per call of the compiled program
_FIRST_MOTION = 0.05  # change of a log-norm in the first step
_SHORTEST = 1e-13  # of the duration
# The Bogacki–Shampine pair of orders three and two; the last stage is the first stage of the next step.
_STAGES = ((1 / 2,), (0.0, 3 / 4), (2 / 9, 1 / 3, 4 / 9))
_RECORDED = ("time", "loss", "descent_rate")
_ERROR = (2 / 9 - 7 / 24, 1 / 3 - 1 / 4, 4 / 9 - 1 / 3, -1 / 8)


class _State(NamedTuple):
    """State of a flow.

    Attributes:
        time: Gradient-flow time.
        step: Size of the next trial step.
        directions: Unit directions, one row per neuron.
        log_norms: Log-norm of each neuron.
        bias: Output bias; zero if the network has none.
        velocity: Velocities of the directions, the log-norms and the output bias.
        loss: L = ½ E‖f(x) − y‖².
        descent_rate: −dL/dt.
    """

    time: Array
    step: Array
    directions: Float[Array, "neurons weights"]
    log_norms: Float[Array, " neurons"]
    bias: Float[Array, " c"]
    velocity: tuple[Array, Array, Array]
    loss: Array
    descent_rate: Array


def polar_flow(
    task: Task,
    network: Annotated[SumOfNeurons, "a sum of neurons of degree two or more, such as TwoLayer"],
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
    """Solve the gradient flow of a sum of homogeneous neurons from scale·θ in polar coordinates.

    With θ_i = e^{l_i} u_i, ‖u_i‖ = 1, and the gradient g_i of E⟨f_i(x; u), y − f(x)⟩ at u = u_i,

        l_i' = e^{(κ−2) l_i} u_i·g_i        u_i' = e^{(κ−2) l_i} (g_i − (u_i·g_i) u_i).

    An output bias, as in `networks.BiasedTwoLayer`, is integrated together with the neurons.

    The error of a step is the root mean square error of the directions and log-norms of all neurons, so the accuracy
    does not depend on the scale. The velocity is discontinuous when a ReLU neuron becomes active or inactive on a
    sample. The solver does not locate these discontinuities, because they do not limit the step size at tolerances of
    1e-3 and above.

    Args:
        network: A sum of neurons of degree κ ≥ 2, with its weights at unit scale.
        task: Inputs and targets.
        scale: Factor on the initial weights.
        duration: Gradient-flow time at which to stop.
        tolerance: Error of a step, in the direction (radians) and in the log-norm.
        normalised: Whether to solve the homogeneity-normalised flow, in which e^{(κ−2) l_i} is replaced by one.
        points: Maximum number of times to return.
        max_steps: Maximum number of steps.
        operations: Maximum number of floating-point operations, counted to within a factor of about two; None for no
            limit.
        solver: "explicit" or "stiff" (linearly implicit, for smooth neurons without an output bias). The default is
            "stiff" for degrees above two, because large neurons then converge long before small neurons begin to move.
        partial: Whether to return the trajectory so far, instead of raising an error, if a limit is reached.

    Returns:
        Record with `loss` and `descent_rate` (−dL/dt) over `time`. The attribute `operations` is the estimated number
        of floating-point operations.

    Raises:
        InputError: If the network is not a sum of neurons of degree two or more, if the initial weights of a neuron are
            zero or not finite, or if a number is not positive.
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
    biased = isinstance(network, BiasedTwoLayer) and network.bias is not None
    with jax.enable_x64(True):
        frame = jax.tree.map(
            lambda leaf: jax.device_put(np.asarray(leaf, float)) if eqx.is_inexact_array(leaf) else leaf, network
        )
        data = {"inputs": task.inputs, "targets": task.targets, "normalised": np.asarray(float(normalised))}
        data["biased"] = np.asarray(float(biased))
        bias = np.zeros(task.output_dimension)
        if biased:
            bias = bias + scale * np.asarray(frame.bias)
            frame = eqx.tree_at(lambda each: each.bias, frame, None)
        numbers = {"duration": np.asarray(float(duration)), "tolerance": np.asarray(float(tolerance))}
        start = jax.device_put(Neurons(rows / norms[:, None], np.log(norms) + np.log(scale)))
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
        max_steps = work.steps(solver, max_steps)
        if solver == "stiff":
            flow = StiffNeurons(frame, task.inputs, task.targets)
            path, _ = integrate_adaptively(
                flow, start, ROSENBROCK, duration=duration, tolerance=tolerance, max_steps=max_steps, partial=partial
            )
        else:
            path = _explicitly(
                frame, data, _initial_state(frame, data, *start, bias, numbers), numbers, max_steps, partial
            )
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
    """Return the number of operations per explicit step (four velocities and output derivatives) and implicit step."""
    implicit = work_of_a_step(task, network) if isinstance(task, Task) else 0.0
    explicit = 24.0 * np.size(network.neurons) * len(task.inputs)
    return Work(explicit, implicit, np.inf if most is None else float(most))


def _explicitly(
    frame: Any, data: Any, state: _State, numbers: Any, max_steps: int, partial: bool
) -> dict[str, np.ndarray]:
    """Integrate by explicit steps, and return the recorded quantities after every accepted step."""
    pieces = [{name: np.array([float(getattr(state, name))]) for name in _RECORDED}]
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
    return {name: np.concatenate([each[name] for each in pieces]) for name in _RECORDED}


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
def _initial_state(frame: Any, data: Any, directions: Any, log_norms: Any, bias: Any, numbers: Any) -> _State:
    variables = jnp.asarray(directions), jnp.asarray(log_norms), jnp.asarray(bias)
    velocity, *losses = _velocity(frame, data, *variables)
    fastest = jnp.maximum(jnp.max(jnp.abs(velocity[1])), data["biased"])
    step = jnp.where(fastest > 0, _FIRST_MOTION / fastest, numbers["duration"])
    return _State(jnp.zeros(()), step, *variables, velocity, *losses)


@filter_jit
def _advanced(frame: Any, data: Any, state: _State, numbers: Any) -> tuple[_State, dict[str, Array]]:
    """Take several steps; return the state and the recorded quantities after each accepted step, padded with NaN."""
    duration, tolerance = numbers["duration"], numbers["tolerance"]
    target_power = jnp.sum(data["targets"] ** 2) / len(data["targets"])

    def combined(weights: Any, stages: Any) -> list[Any]:
        return [
            sum(weight * each for weight, each in zip(weights, kind, strict=False))
            for kind in zip(*stages, strict=True)
        ]

    def tried(state: _State) -> _State:
        step = jnp.minimum(state.step, duration - state.time)
        before = state.directions, state.log_norms, state.bias
        stages, losses, variables = [state.velocity], [], before
        for weights in _STAGES:
            variables = [old + step * velocity for old, velocity in zip(before, combined(weights, stages), strict=True)]
            velocity, *losses = _velocity(frame, data, *variables)
            stages.append(velocity)
        directions, log_norms, bias = variables
        wrong = combined(_ERROR, stages)
        squared = jnp.mean(jnp.sum(wrong[0] ** 2, axis=1) + wrong[1] ** 2) + jnp.sum(wrong[2] ** 2) / target_power
        error = step * jnp.sqrt(squared) / tolerance
        error = jnp.where(jnp.isfinite(error), error, jnp.inf)
        accepted = (error <= 1) | (step <= _SHORTEST * duration)
        factor = jnp.clip(0.9 * jnp.maximum(error, 1e-6) ** (-1 / 3), 0.2, 4.0)
        norms = jnp.linalg.norm(directions, axis=1, keepdims=True)
        # Avoid a tiny last step caused by rounding.
        time = jnp.where(duration - state.time - step <= _SHORTEST * duration, duration, state.time + step)
        after = _State(time, step * factor, directions / norms, log_norms, bias, velocity, *losses)
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

    path = {name: jnp.full(_AT_ONCE, jnp.nan) for name in _RECORDED}
    state, path, _ = jax.lax.while_loop(unfinished, another, (state, path, 0))
    return state, path


def _velocity(
    frame: Any, data: Any, directions: Array, log_norms: Array, bias: Array
) -> tuple[tuple[Array, Array, Array], Array, Array]:
    """Compute the velocities of directions, log-norms and output bias, the loss, and the descent rate."""
    inputs, targets, degree = data["inputs"], data["targets"], frame.degree
    _, pull = jax.vjp(lambda rows: frame.with_neurons(rows)(inputs), directions)
    residual = targets - frame.with_neurons(directions).weighted(jnp.exp(degree * log_norms))(inputs) - bias
    (gradient,) = pull(residual / len(inputs))
    growth = jnp.sum(directions * gradient, axis=1)
    rate = jnp.exp((1 - data["normalised"]) * (degree - 2) * log_norms)
    turning = rate[:, None] * (gradient - growth[:, None] * directions)
    # The velocity of θ_i is e^l · rate · g, and the loss gradient is −e^{(κ−1) l} g.
    descent_rate = jnp.sum(rate * jnp.exp(degree * log_norms) * jnp.sum(gradient**2, axis=1))
    drift = data["biased"] * jnp.mean(residual, axis=0)
    loss = jnp.sum(residual**2) / (2 * len(inputs))
    return (turning, rate * growth, drift), loss, descent_rate + jnp.sum(drift**2)
