"""Follow flows by steps that are as long as their error allows, in one compiled loop for all methods."""

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

__all__ = ["Method", "StiffFlow", "follow_by_steps"]

_SHORTEST = 1e-15  # of the duration
_SAFETY, _SLOWER, _FASTER = 0.8, 0.2, 5.0  # of a step, and how much shorter or longer the next one may be
_REFUSED = 0.5  # of a step, at most, after it was refused for what was foreseen
_LEAST = 1e-2  # error over what is allowed below which the next step is no longer for it
_AT_ONCE = 32  # steps in one call of the program, if not told otherwise


class StiffFlow(eqx.Module):
    """A flow in variables that may be chosen anew before every step: `moving`, an array that starts at `start(state)`.

    Arrays among its fields are arguments of the compiled program, all else is part of it.
    """

    @abc.abstractmethod
    def start(self, state: Any) -> Array:
        """What moves, at a state."""

    @abc.abstractmethod
    def velocity(self, moving: Array, state: Any) -> Array:
        """Its velocity, in the variables that belong to the state at which the step began."""

    @abc.abstractmethod
    def inverse(self, shift: Array, state: Any) -> Callable[[Array], Array]:
        """The function b ↦ (shift − J)⁻¹ b, with J the Jacobian of the velocity at the state."""

    @abc.abstractmethod
    def size(self, change: Array, state: Any) -> Array:
        """How large a change of what moves is; a tenth is one by ten percent."""

    @abc.abstractmethod
    def moved(self, moving: Array, state: Any) -> Any:
        """The state after a step."""

    @abc.abstractmethod
    def statistics(self, state: Any) -> dict[str, Array]:
        """What is recorded; must hold `loss` and `descent_rate`."""

    def renewed(self, state: Any) -> tuple[StiffFlow, Any]:
        """An equivalent flow and state, from which to go on after some steps; not compiled."""
        return self, state

    def outgrown(self, state: Any) -> Any:
        """Whether it should be renewed at once."""
        return False


class Method(NamedTuple):
    """How a step is taken, and how long it may be.

    Attributes:
        step: Function of the arguments of `rosenbrock_step` with the like results.
        order: Power of the step as which its error grows.
        foresees: Whether the next step is told by the last two, as suits flows that become faster and faster; where
            stability bounds the steps, half of them would be refused.
        first: Motion in the first step, in the `size` of the flow.
        farthest: Motion in any step.
    """

    step: Callable[..., tuple[Array, Array]]
    order: int
    foresees: bool
    first: float
    farthest: float


def follow_by_steps(
    flow: StiffFlow,
    state: Any,
    method: Method,
    *,
    duration: float,
    tolerance: float,
    start: float = 0.0,
    max_steps: int = 100_000,
    partial: bool = False,
    at_once: int = _AT_ONCE,
) -> tuple[dict[str, np.ndarray], Any]:
    """Follow a flow by steps of some method, with its errors kept small.

    Args:
        flow: The flow.
        state: Where it begins.
        method: How its steps are taken.
        duration: Final time.
        tolerance: Largest error of a step, in the `size` of the flow.
        start: Time at which it begins.
        max_steps: Number of steps after which the flow is given up.
        partial: Whether to return what was followed until then rather than raise.
        at_once: Steps in one call of the program, between which nobody looks at the clock.

    Returns:
        `time` and each statistic, with the steps along the first axis; and the last state.

    Raises:
        DivergenceError: The steps became too small, or `max_steps` was reached.
    """
    numbers = {"duration": np.asarray(float(duration)), "tolerance": np.asarray(float(tolerance))}
    time, pace = np.asarray(float(start)), _Pace(*np.full((3,), np.nan))
    pieces: list[dict[str, np.ndarray]] = []
    tried = 0
    while time < duration:
        before = float(time)
        flow, state = flow.renewed(state)
        time, pace, state, record, count = _advanced(flow, state, time, pace, numbers, method, at_once)
        time, pace, record, count = jax.tree.map(np.asarray, (time, pace, record, count))
        taken = np.isfinite(record["time"])
        # Each piece begins with the state at which the one before it ended.
        pieces.append({name: values[taken][1 if pieces else 0 :] for name, values in record.items()})
        # A call takes as long as some steps.
        tried += max(int(count), min(at_once, _AT_ONCE))
        stuck = float(time) <= before and not float(pace.step) > _SHORTEST * duration
        if tried > max_steps and partial and time > start:
            break
        if stuck or tried > max_steps:
            raise DivergenceError(
                f"{'the step size underflowed' if stuck else f'max_steps ({max_steps}) was reached'} "
                f"at time {float(time):.6g}",
                time=float(time),
                remedy="standardise the inputs, shorten the duration, or raise max_steps (and operations)",
            )
        report_time(float(time), duration, tried, max_steps if partial else None)
        if overdue():
            break
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}, state


class _Pace(NamedTuple):
    """The next step to try, the last one that was taken, and the error of that over what is allowed."""

    step: Any
    taken: Any
    error: Any

    def after(self, step: Array, error: Array, fine: Array, method: Method) -> _Pace:
        """The controller of Gustafsson, J. ACM 20 (1994) 496, which foresees a flow that becomes faster and faster."""
        error = jnp.clip(jnp.where(jnp.isfinite(error), error, jnp.inf), _LEAST, None)
        factor = _SAFETY * error ** (-1 / method.order)
        if method.foresees:
            grown = (jnp.maximum(self.error, _LEAST) / error) ** (1 / method.order)
            foreseen = factor * (step / self.taken) * grown
            factor = jnp.where(fine & jnp.isfinite(self.taken), jnp.minimum(factor, foreseen), factor)
        factor = jnp.clip(factor, _SLOWER, jnp.where(fine, _FASTER, _REFUSED if method.foresees else 1.0))
        return _Pace(step * factor, jnp.where(fine, step, self.taken), jnp.where(fine, error, self.error))


@filter_jit
def _advanced(
    flow: StiffFlow, state: Any, time: Array, pace: _Pace, numbers: dict[str, Array], method: Method, at_once: int
) -> Any:
    """Time, pace and state some steps later, and what was seen from the start on; NaN where a step was refused."""
    duration, tolerance = numbers["duration"], numbers["tolerance"]
    state = jax.tree.map(jnp.asarray, state)
    speed = flow.size(flow.velocity(flow.start(state), state), state)
    first = jnp.where(speed > 0, method.first / jnp.where(speed > 0, speed, 1.0), duration)
    pace = pace._replace(step=jnp.where(jnp.isnan(pace.step), first, pace.step))

    def tried(carry: Any) -> Any:
        time, pace, state, record, count = carry
        step = jnp.minimum(pace.step, duration - time)
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
        # Rounding must not leave a last step too small to be taken.
        reached = jnp.where(duration - time - step <= _SHORTEST * duration, duration, time + step)
        state = jax.tree.map(lambda new, old: jnp.where(fine, new, old), after, state)
        seen = {"time": reached, **seen}
        record = {name: values.at[count].set(jnp.where(fine, seen[name], jnp.nan)) for name, values in record.items()}
        return jnp.where(fine, reached, time), pace.after(step, error, fine, method), state, record, count + 1

    def unfinished(carry: Any) -> Array:
        time, pace, state, _, count = carry
        return (count <= at_once) & (time < duration) & (pace.step > 0) & ~jnp.asarray(flow.outgrown(state))

    now = {"time": time, **flow.statistics(state)}
    record = jax.tree.map(lambda leaf: jnp.full((at_once + 1, *jnp.shape(leaf)), jnp.nan).at[0].set(leaf), now)
    time, pace, state, record, count = jax.lax.while_loop(unfinished, tried, (time, pace, state, record, 1))
    return time, pace, state, record, count - 1
