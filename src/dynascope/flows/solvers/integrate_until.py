"""Follow a flow by steps of any method until something happens, in one loop that is quick to compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.flows.solvers.explicit import ERROR, POINTS

__all__ = ["Here", "Method", "follow_until", "tsitouras"]

_FIRST_MOTION = 0.01  # of the state, in the first step
_SHORTEST = 1e-13  # of the time of the end
_SAFETY, _SLOWER, _FASTER = 0.9, 0.2, 10.0  # of a step, and how much shorter or longer the next one may be
_LEAST = 1e-12  # error over what is allowed, below which all are alike

_STAGES = len(POINTS)
_SHARES = np.array([np.pad(row, (0, _STAGES - len(row))) for row in POINTS])


class Here(NamedTuple):
    """Where a flow is.

    Attributes:
        time: t.
        state: y, one vector.
        slope: Its velocity.
    """

    time: Float[Array, ""]
    state: Float[Array, " p"]
    slope: Float[Array, " p"]


# From where a flow is, the length of the step and what the last step told, to the state after the step, its velocity
# there, the error of the state, and what the next step is told.
Method: TypeAlias = Callable[[Here, Array, Any], tuple[Array, Array, Array, Any]]


def follow_until(
    here: Here,
    end: Array,
    method: Method,
    happened: Callable[[Here], Array],
    *,
    order: int,
    tolerance: Array | float,
    most: int,
    memory: Any = (),
) -> tuple[Here, Array, Array, Any]:
    """Follow an autonomous flow until a time or until something has happened after a step.

    A step is accepted if the norm of its error is below the tolerance times that of the state. Entries of the state
    that are zero and stay so change nothing of this, however many there are.

    Args:
        here: Where it begins.
        end: Time at which to stop.
        method: Takes a step.
        happened: Whether to stop where a step has led.
        order: That of the error in the length of the step.
        tolerance: Largest error of a step, as a share of the state.
        most: Steps after which to give up, refused ones included.
        memory: What the first step is told.

    Returns:
        Where it ended, whether something happened there, the number of steps, and the memory of the last one.

    Example:
        >>> import math
        >>> grow = tsitouras(lambda y: y)
        >>> with jax.enable_x64(True):
        ...     start = Here(np.zeros(()), np.ones(1), np.ones(1))
        ...     options = {"order": 5, "tolerance": 1e-9, "most": 100}
        ...     follow = lambda here, end: follow_until(here, end, grow, lambda here: here.state[0] > 9, **options)
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
        # Rounding must not leave a last step too small to be taken.
        time = jnp.where(end - here.time - step <= _SHORTEST * end, end, here.time + step)
        fine = error <= 1
        here = jax.tree.map(lambda new, old: jnp.where(fine, new, old), Here(time, state, slope), here)
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
    """The method of `tsitouras_step` with its stages in a loop, so that a velocity is compiled once.

    Args:
        velocity: f of y' = f(y).

    References:
        Tsitouras, Computers & Mathematics with Applications 62 (2011) 770.
    """

    def take(here: Here, step: Array, memory: Any) -> tuple[Array, Array, Array, Any]:
        points, wrong = (jnp.asarray(row, here.state.dtype) for row in (_SHARES, np.array(ERROR)))

        def stage(index: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            _, slopes = carry
            point = here.state + step * (points[index] @ slopes)
            return point, slopes.at[index].set(velocity(point))

        slopes = jnp.zeros((_STAGES, *here.state.shape), here.state.dtype).at[0].set(here.slope)
        end, slopes = jax.lax.fori_loop(1, _STAGES, stage, (here.state, slopes))
        return end, slopes[-1], step * (wrong @ slopes), memory

    return take
