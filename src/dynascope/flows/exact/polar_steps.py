"""Explicit and linearly implicit steps of homogeneous neurons in polar coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.compilation import filter_jit
from dynascope.errors import DivergenceError
from dynascope.flows.deadline import overdue
from dynascope.flows.exact.stiff_neurons import Neurons, StiffNeurons
from dynascope.flows.progress import report_time
from dynascope.flows.solvers.adaptive import integrate_adaptively
from dynascope.flows.solvers.rosenbrock import ROSENBROCK
from dynascope.tasks.task import Task

__all__ = ["ExplicitNeurons", "ImplicitNeurons", "PolarState", "attempted_step", "initial_state"]

_AT_ONCE = 512  # steps per call of the compiled program
_FIRST_MOTION = 0.05  # change of a log-norm in the first step
_SHORTEST = 1e-13  # of the duration
# The Bogacki–Shampine pair of orders three and two; the last stage is the first stage of the next step.
_STAGES = ((1 / 2,), (0.0, 3 / 4), (2 / 9, 1 / 3, 4 / 9))
_RECORDED = ("time", "loss", "descent_rate")
_ERROR = (2 / 9 - 7 / 24, 1 / 3 - 1 / 4, 4 / 9 - 1 / 3, -1 / 8)


class PolarState(NamedTuple):
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


class ExplicitNeurons:
    """Integrates neurons and an output bias by explicit steps.

    Attributes:
        steps: Number of accepted steps.
    """

    def __init__(
        self, frame: Any, task: Task, start: Neurons, bias: np.ndarray | None, *, normalised: bool, **numbers: float
    ):
        self._frame = frame
        self._data = {
            **{"inputs": task.inputs, "targets": task.targets, "normalised": np.asarray(float(normalised))},
            "biased": np.asarray(float(bias is not None)),
        }
        bias = np.zeros(task.output_dimension) if bias is None else bias
        self._numbers = {name: np.asarray(float(value)) for name, value in numbers.items()}
        self._state = _start(frame, self._data, start.directions, start.log_norms, bias, self._numbers)
        self._pieces = [{name: values[None] for name, values in self.now.items()}]
        self.steps = 0

    @property
    def now(self) -> dict[str, np.ndarray]:
        """The current time, loss and descent rate."""
        return {name: np.asarray(getattr(self._state, name)) for name in _RECORDED}

    @property
    def path(self) -> dict[str, np.ndarray]:
        """The time, loss and descent rate at the beginning and after every accepted step."""
        return {name: np.concatenate([each[name] for each in self._pieces]) for name in _RECORDED}

    @property
    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """The current weights, one row per neuron, and the output bias."""
        return _rows(self._state.directions, self._state.log_norms), np.asarray(self._state.bias)

    def advance(self, until: float, *, max_steps: int, partial: bool) -> None:
        """Integrate until a time, or until a limit is reached.

        Raises:
            DivergenceError: If the step size underflows, or if `max_steps` is reached unless `partial` is set.
        """
        numbers = {**self._numbers, "until": np.asarray(float(until))}
        while float(self._state.time) < until and not (partial and self.steps > max_steps):
            before = float(self._state.time)
            self._state, path = jax.device_get(_advanced(self._frame, self._data, self._state, numbers))
            taken = np.isfinite(path["time"])
            self._pieces.append({name: values[taken] for name, values in path.items()})
            self.steps += int(taken.sum())
            if self.steps > max_steps and partial:
                break
            _require_progress(before, self._state, self.steps, max_steps)
            duration, now = float(self._numbers["duration"]), float(self._state.time)
            report_time(now, duration, self.steps, max_steps if partial else None)
            if overdue():
                break


class ImplicitNeurons:
    """Integrates smooth neurons by linearly implicit steps; see `ExplicitNeurons` for the interface."""

    def __init__(self, frame: Any, task: Task, start: Neurons, *, duration: float, tolerance: float):
        self._flow = StiffNeurons(frame, task.inputs, task.targets)
        self._duration, self._tolerance = duration, tolerance
        self._state, self._pieces = start._replace(order=np.arange(len(start.log_norms))), []
        self.steps = 0

    @property
    def now(self) -> dict[str, np.ndarray]:
        """The current time, loss and descent rate."""
        if not self._pieces:
            return {"time": np.zeros(()), **jax.device_get(_statistics(self._flow, self._state))}
        return {name: np.asarray(values[-1]) for name, values in self._pieces[-1].items()}

    @property
    def path(self) -> dict[str, np.ndarray]:
        """The time, loss and descent rate at the beginning and after every accepted step."""
        return {name: np.concatenate([each[name] for each in self._pieces]) for name in _RECORDED}

    @property
    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """The current weights, one row per neuron in the initial order, and the output bias, which is zero."""
        rows = _rows(self._state.directions, self._state.log_norms)
        return rows[np.argsort(np.asarray(self._state.order))], np.zeros(self._flow.targets.shape[1])

    def advance(self, until: float, *, max_steps: int, partial: bool) -> None:
        """Integrate until a time, or until a limit is reached.

        Raises:
            DivergenceError: If the step size underflows, or if `max_steps` is reached unless `partial` is set.
        """
        start = float(self.now["time"])
        if until <= start or (partial and self.steps >= max_steps):
            return
        path, self._state = integrate_adaptively(
            *(self._flow, self._state, ROSENBROCK),
            duration=self._duration,
            tolerance=self._tolerance,
            start=start,
            until=until,
            max_steps=max(max_steps - self.steps, 1),
            partial=partial,
        )
        # Each path begins with the last state of the previous one.
        self._pieces.append({name: values[1 if self._pieces else 0 :] for name, values in path.items()})
        self.steps += len(path["time"]) - 1


@filter_jit
def _statistics(flow: StiffNeurons, state: Neurons) -> dict[str, Array]:
    return flow.statistics(state)


def _rows(directions: Any, log_norms: Any) -> np.ndarray:
    return np.exp(np.asarray(log_norms))[:, None] * np.asarray(directions)


def _require_progress(before: float, state: PolarState, steps: int, max_steps: int) -> None:
    now = float(state.time)
    stuck = now <= before or not np.isfinite(float(state.loss))
    if stuck or steps > max_steps:
        problem = "the step size underflowed" if stuck else f"max_steps ({max_steps}) was reached"
        remedy = "check the data for extreme values" if stuck else "raise max_steps, or standardise the inputs"
        raise DivergenceError(
            f"{problem} at time {before:.6g}", time=before, remedy=f"{remedy}, or shorten the duration"
        )


def initial_state(
    frame: Any, data: Any, directions: Any, log_norms: Any, bias: Any, numbers: Mapping[str, Any]
) -> PolarState:
    """The state at time zero, with the size of the first trial step."""
    variables = jnp.asarray(directions), jnp.asarray(log_norms), jnp.asarray(bias)
    velocity, *losses = _velocity(frame, data, *variables)
    fastest = jnp.maximum(jnp.max(jnp.abs(velocity[1])), data["biased"])
    step = jnp.where(fastest > 0, _FIRST_MOTION / fastest, numbers["duration"])
    return PolarState(jnp.zeros(()), step, *variables, velocity, *losses)


def attempted_step(frame: Any, data: Any, state: PolarState, numbers: Mapping[str, Any]) -> PolarState:
    """Try one step that ends at the time `until` or before; a rejected step only changes the size of the next one."""
    duration, until, tolerance = numbers["duration"], numbers["until"], numbers["tolerance"]
    target_power = jnp.sum(data["targets"] ** 2) / len(data["targets"])

    def combined(weights: Any, stages: Any) -> list[Any]:
        return [
            sum(weight * each for weight, each in zip(weights, kind, strict=False))
            for kind in zip(*stages, strict=True)
        ]

    step = jnp.minimum(state.step, until - state.time)
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
    time = jnp.where(until - state.time - step <= _SHORTEST * duration, until, state.time + step)
    # A step that is shortened to end at a recorded time does not shorten the next one.
    shortened = accepted & (step < state.step)
    following = jnp.maximum(step * factor, jnp.where(shortened, state.step, 0.0))
    after = PolarState(time, following, directions / norms, log_norms, bias, stages[-1], *losses)
    return jax.tree.map(lambda new, old: jnp.where(accepted, new, old), after, state)._replace(step=following)


_start = filter_jit(initial_state)


@filter_jit
def _advanced(frame: Any, data: Any, state: PolarState, numbers: Any) -> tuple[PolarState, dict[str, Array]]:
    """Take several steps; return the state and the recorded quantities after each accepted step, padded with NaN."""

    def another(carry: Any) -> Any:
        state, path, count = carry
        after = attempted_step(frame, data, state, numbers)
        taken = after.time > state.time
        path = {
            name: values.at[count].set(jnp.where(taken, getattr(after, name), values[count]))
            for name, values in path.items()
        }
        return after, path, count + taken

    def unfinished(carry: Any) -> Array:
        state, _, count = carry
        return (count < _AT_ONCE) & (state.time < numbers["until"]) & (state.step > 0)

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
