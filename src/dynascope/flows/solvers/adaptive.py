"""Adaptive time stepping of flows, in one compiled loop for all methods."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dynascope.compilation import filter_jit
from dynascope.errors import DivergenceError
from dynascope.flows.deadline import overdue
from dynascope.flows.progress import report_time

__all__ = ["Method", "StiffFlow", "integrate_adaptively"]

_SHORTEST = 1e-15  # of the duration
_SAFETY, _SLOWER, _FASTER = 0.8, 0.2, 5.0  # safety factor, and smallest and largest ratio of successive steps
_REFUSED = 0.5  # largest ratio after a rejected step of a predictive controller
_LEAST = 1e-2  # relative error below which the next step is not longer
_AT_ONCE = 32  # steps per call of the compiled program by default


class StiffFlow(eqx.Module):
    """A flow in variables that are redefined before every step: an array `moving`, which starts at `start(state)`.

    Array fields are arguments of the compiled program; all other fields are static.
    """

    @abc.abstractmethod
    def start(self, state: Any) -> Array:
        """Return the variables for a state."""

    @abc.abstractmethod
    def velocity(self, moving: Array, state: Any) -> Array:
        """Compute the velocity of the variables, which were defined at the beginning of the step."""

    @abc.abstractmethod
    def inverse(self, shift: Array, state: Any) -> Callable[[Array], Array]:
        """Return the function b ↦ (shift − J)⁻¹ b, with the Jacobian J of the velocity at the state."""

    @abc.abstractmethod
    def size(self, change: Array, state: Any) -> Array:
        """Return the relative size of a change in the variables; 0.1 means ten percent."""

    @abc.abstractmethod
    def moved(self, moving: Array, state: Any) -> Any:
        """Return the state after a step."""

    @abc.abstractmethod
    def statistics(self, state: Any) -> dict[str, Array]:
        """Compute the recorded quantities, including `loss` and `descent_rate`."""

    def refreshed(self, state: Any) -> tuple[StiffFlow, Any]:
        """Return an equivalent flow and state for the next steps; called between runs of the compiled program."""
        return self, state

    def needs_refresh(self, state: Any) -> Any:
        """Whether `refreshed` should be called before the next step."""
        return False


class Method(NamedTuple):
    """A step method and its step-size control.

    Attributes:
        step: Function with the arguments and return values of `rosenbrock_step`.
        order: Order of the error in the step size.
        predictive: Whether the controller predicts the next step from the last two, which suits accelerating flows. If
            stability limits the step size, a predictive controller rejects half of the steps.
        first: Size of the motion in the first step, measured by the `size` of the flow.
        farthest: Largest motion in a single step.
    """

    step: Callable[..., tuple[Array, Array]]
    order: int
    predictive: bool
    first: float
    farthest: float


def integrate_adaptively(
    flow: StiffFlow,
    state: Any,
    method: Method,
    *,
    duration: float,
    tolerance: float,
    start: float = 0.0,
    until: float | None = None,
    max_steps: int = 100_000,
    partial: bool = False,
    at_once: int = _AT_ONCE,
) -> tuple[dict[str, np.ndarray], Any]:
    """Integrate a flow with adaptive steps.

    Args:
        flow: The flow.
        state: Initial state.
        method: Step method.
        duration: Final time.
        tolerance: Largest allowed error of a step, measured by the `size` of the flow.
        start: Initial time.
        until: Time at which to return; by default, the duration.
        max_steps: Maximum number of steps.
        partial: Whether to return the trajectory so far, instead of raising an error, if `max_steps` is reached.
        at_once: Steps per run of the compiled program; time limits are checked between runs.

    Returns:
        `time` and each statistic, with the steps along the first axis; and the final state.

    Raises:
        DivergenceError: If the step size underflows or `max_steps` is reached.
    """
    until = duration if until is None else until
    options = {"duration": duration, "until": until, "tolerance": tolerance}
    numbers = {name: np.asarray(float(value)) for name, value in options.items()}
    time, pace = np.asarray(float(start)), _Pace(*np.full((3,), np.nan))
    pieces: list[dict[str, np.ndarray]] = []
    tried = 0
    while time < until:
        before = float(time)
        flow, state = flow.refreshed(state)
        time, pace, state, record, count = _advanced(flow, state, time, pace, numbers, method, at_once)
        time, pace, record, count = jax.tree.map(np.asarray, (time, pace, record, count))
        taken = np.isfinite(record["time"])
        # Each piece begins with the last state of the previous one.
        pieces.append({name: values[taken][1 if pieces else 0 :] for name, values in record.items()})
        # A call has the overhead of several steps.
        tried += max(int(count), min(at_once, _AT_ONCE))
        stuck = float(time) <= before and not float(pace.step) > _SHORTEST * duration
        if tried > max_steps and partial and time > start:
            break
        if stuck or tried > max_steps:
            raise DivergenceError(
                f"{'the step size underflowed' if stuck else f'max_steps ({max_steps}) was reached'} "
                f"at time {float(time):.6g}",
                time=float(time),
                remedy="standardise the inputs, shorten the duration, or raise max_steps and operations",
            )
        report_time(float(time), duration, tried, max_steps if partial else None)
        if overdue():
            break
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}, state


class _Pace(NamedTuple):
    """Next trial step, last accepted step, and the error of the last accepted step relative to the tolerance."""

    step: Any
    taken: Any
    error: Any

    def after(self, step: Array, error: Array, fine: Array, method: Method) -> _Pace:
        """Apply the predictive controller of Gustafsson, ACM Trans. Math. Softw. 20 (1994) 496."""
        error = jnp.clip(jnp.where(jnp.isfinite(error), error, jnp.inf), _LEAST, None)
        factor = _SAFETY * error ** (-1 / method.order)
        if method.predictive:
            grown = (jnp.maximum(self.error, _LEAST) / error) ** (1 / method.order)
            foreseen = factor * (step / self.taken) * grown
            factor = jnp.where(fine & jnp.isfinite(self.taken), jnp.minimum(factor, foreseen), factor)
        factor = jnp.clip(factor, _SLOWER, jnp.where(fine, _FASTER, _REFUSED if method.predictive else 1.0))
        return _Pace(step * factor, jnp.where(fine, step, self.taken), jnp.where(fine, error, self.error))


@filter_jit
def _advanced(
    flow: StiffFlow, state: Any, time: Array, pace: _Pace, numbers: dict[str, Array], method: Method, at_once: int
) -> Any:
    """Take several steps. The record begins with the initial state and contains NaN for rejected steps."""
    duration, until, tolerance = numbers["duration"], numbers["until"], numbers["tolerance"]
    state = jax.tree.map(jnp.asarray, state)
    speed = flow.size(flow.velocity(flow.start(state), state), state)
    first = jnp.where(speed > 0, method.first / jnp.where(speed > 0, speed, 1.0), duration)
    pace = pace._replace(step=jnp.where(jnp.isnan(pace.step), first, pace.step))

    def tried(carry: Any) -> Any:
        time, pace, state, record, count = carry
        step = jnp.minimum(pace.step, until - time)
        end, wrong = method.step(
            lambda moving: flow.velocity(moving, state),
            lambda shift: flow.inverse(shift, state),
            flow.start(state),
            step,
        )
        error = flow.size(wrong, state) / tolerance
        error = jnp.maximum(error, (flow.size(end - flow.start(state), state) / method.farthest) ** 4)
        after = flow.moved(end, state)
        seen = flow.statistics(after)
        fine = (error <= 1) & jnp.isfinite(seen["loss"])
        # Avoid a tiny last step caused by rounding.
        reached = jnp.where(until - time - step <= _SHORTEST * duration, until, time + step)
        state = jax.tree.map(lambda new, old: jnp.where(fine, new, old), after, state)
        seen = {"time": reached, **seen}
        record = {name: values.at[count].set(jnp.where(fine, seen[name], jnp.nan)) for name, values in record.items()}
        return jnp.where(fine, reached, time), pace.after(step, error, fine, method), state, record, count + 1

    def unfinished(carry: Any) -> Array:
        time, pace, state, _, count = carry
        return (count <= at_once) & (time < until) & (pace.step > 0) & ~jnp.asarray(flow.needs_refresh(state))

    now = {"time": time, **flow.statistics(state)}
    record = jax.tree.map(lambda leaf: jnp.full((at_once + 1, *jnp.shape(leaf)), jnp.nan).at[0].set(leaf), now)
    time, pace, state, record, count = jax.lax.while_loop(unfinished, tried, (time, pace, state, record, 1))
    return time, pace, state, record, count - 1
