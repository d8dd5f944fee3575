"""Integration of a flow until an event occurs, in one loop that compiles quickly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.flows.solvers.explicit import ERROR, POINTS

__all__ = ["FlowState", "Method", "integrate_until", "tsitouras"]

_FIRST_MOTION = 0.01  # relative change of the state in the first step
_SHORTEST = 1e-13  # of the final time
_SAFETY, _SLOWER, _FASTER = 0.9, 0.2, 10.0  # safety factor, and smallest and largest ratio of successive steps
_LEAST = 1e-12  # lower bound on the relative error, to avoid division by zero

_STAGES = len(POINTS)
_SHARES = np.array([np.pad(row, (0, _STAGES - len(row))) for row in POINTS])


class FlowState(NamedTuple):
    """Time, state and velocity of a flow.

    Attributes:
        time: Time t.
        state: State y, a vector.
        slope: Velocity y'.
    """

    time: Float[Array, ""]
    state: Float[Array, " p"]
    slope: Float[Array, " p"]


# Function of the current `FlowState`, the step size and a memory. It returns the state after the step, the velocity at
# this state, the error of the state, and the memory for the next step.
Method: TypeAlias = Callable[[FlowState, Array, Any], tuple[Array, Array, Array, Any]]


def integrate_until(
    here: FlowState,
    end: Array,
    method: Method,
    happened: Callable[[FlowState], Array],
    *,
    order: int,
    tolerance: Array | float,
    most: int,
    memory: Any = (),
) -> tuple[FlowState, Array, Array, Any]:
    """Integrate an autonomous flow until a final time, or until a condition holds after a step.

    A step is accepted if the norm of the error is below the tolerance times the norm of the state. Entries of the state
    that remain zero do not affect this criterion.

    Args:
        here: Initial time, state and velocity.
        end: Final time.
        method: Step method.
        happened: Condition that ends the integration, as a function of the time, state and velocity after a step.
        order: Order of the error in the step size.
        tolerance: Largest allowed error of a step, relative to the state.
        most: Maximum number of steps, including rejected steps.
        memory: Internal state that the method receives in the first step.

    Returns:
        The final time, state and velocity, whether the condition held, the number of steps, and the final internal
        state of the method.

    Example:
        >>> import math
        >>> grow = tsitouras(lambda y: y)
        >>> with jax.enable_x64(True):
        ...     start = FlowState(np.zeros(()), np.ones(1), np.ones(1))
        ...     options = {"order": 5, "tolerance": 1e-9, "most": 100}
        ...     follow = lambda here, end: integrate_until(here, end, grow, lambda here: here.state[0] > 9, **options)
        ...     there, _, _, _ = jax.jit(follow)(start, np.ones(()))
        >>> math.isclose(there.state.item(), math.e, rel_tol=1e-8)
        True
    """

    def tried(carry: Any) -> Any:
        here, step, _, count, memory = carry
        step = jnp.minimum(step, end - here.time)
        state, slope, wrong, memory = method(here, step, memory)
        error = jnp.linalg.norm(wrong) / (tolerance * jnp.linalg.norm(here.state))
        error = jnp.where(jnp.isfinite(error), error, jnp.inf)
        # Avoid a tiny last step caused by rounding.
        time = jnp.where(end - here.time - step <= _SHORTEST * end, end, here.time + step)
        fine = error <= 1
        here = jax.tree.map(lambda new, old: jnp.where(fine, new, old), FlowState(time, state, slope), here)
        factor = jnp.clip(_SAFETY * jnp.maximum(error, _LEAST) ** (-1 / order), _SLOWER, _FASTER)
        return here, step * factor, fine & happened(here), count + 1, memory

    def unfinished(carry: Any) -> Array:
        here, _, stopped, count, _ = carry
        return (here.time < end) & ~stopped & (count < most)

    size, speed = jnp.linalg.norm(here.state), jnp.linalg.norm(here.slope)
    first = jnp.where(speed > 0, _FIRST_MOTION * size / jnp.where(speed > 0, speed, 1), end)
    carry = (here, first, jnp.zeros((), bool), jnp.zeros((), int), memory)
    here, _, stopped, count, memory = jax.lax.while_loop(unfinished, tried, carry)
    return here, stopped, count, memory


def tsitouras(velocity: Callable[[Array], Array]) -> Method:
    """Make the method of `tsitouras_step` with a loop over its stages, so that the velocity is compiled only once.

    Args:
        velocity: f of y' = f(y).

    References:
        Tsitouras, Computers & Mathematics with Applications 62 (2011) 770.
    """

    def take(here: FlowState, step: Array, memory: Any) -> tuple[Array, Array, Array, Any]:
        points, wrong = (jnp.asarray(row, here.state.dtype) for row in (_SHARES, np.array(ERROR)))

        def stage(index: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            _, slopes = carry
            point = here.state + step * (points[index] @ slopes)
            return point, slopes.at[index].set(velocity(point))

        slopes = jnp.zeros((_STAGES, *here.state.shape), here.state.dtype).at[0].set(here.slope)
        end, slopes = jax.lax.fori_loop(1, _STAGES, stage, (here.state, slopes))
        return end, slopes[-1], step * (wrong @ slopes), memory

    return take
