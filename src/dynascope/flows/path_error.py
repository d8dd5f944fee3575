"""Step sizes that keep the error small beside the path travelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import jax.numpy as jnp
from jax import Array

__all__ = ["PathErrorController"]

# At a kink, the estimated error allowed in a step relative to the motion of a recent smooth step. Estimates are made for
# smooth fields; across a jump, that of Tsitouras is up to a hundred times too small.
_KINK_TOLERANCE = 1e-4


class _State(NamedTuple):
    steps: Any
    rejected: Any  # error over what is allowed, in the last attempt from this point; infinite if there was none
    ratio: Any  # error over what is allowed, in the last step through smooth parts
    length: Any  # duration of that step
    motion: Any  # distance moved in the last step whose length its error decided


class PathErrorController(diffrax.PIDController):
    """Accept a step if its error is below rtol times the distance it moves.

    A weight that grows from a tiny start shares its array with weights that are large already. An error that is small
    beside the weights would drown it; an error that is small beside the motion does not, so that plateaus are left in
    time and convergence is followed down to rounding. Over a run, the errors add up to at most rtol times the length
    of the path. Distances are root mean squares over the weights; `atol` and the rounding of the weights are allowed
    always.

    Where the velocity jumps, as when a ReLU neuron switches on a sample, the error of a step shrinks only as fast as
    its motion, and no step would pass; the flow may even slide along such a kink. A step whose error is far larger than
    the last smooth step foretells, and did not shrink with the step, is therefore measured against the motion of a step
    of usual length, and 1e-4 of that (or rtol, if larger) is allowed.

    The state must be one vector.

    Example:
        >>> decay = diffrax.ODETerm(lambda t, y, args: -y)
        >>> end = diffrax.diffeqsolve(
        ...     decay, diffrax.Tsit5(), 0, 20, None, jnp.ones(1), stepsize_controller=PathErrorController(1e-3, 0.0)
        ... )
        >>> bool(abs(end.ys[-1, 0] / jnp.exp(-20) - 1) < 0.1)
        True
    """

    def init(
        self, terms: Any, t0: Any, t1: Any, y0: Array, dt0: Any, args: Any, func: Callable, error_order: Any
    ) -> tuple[Any, _State]:
        """A first step of a hundredth of the time in which the motion would equal the weights."""
        if dt0 is None:
            size, speed = self.norm(y0), self.norm(func(terms, t0, y0, args))
            moving = (size > 0) & (speed > 0)
            dt0 = jnp.where(moving, 0.01 * size / jnp.where(moving, speed, 1), 1e-6 * (t1 - t0))
        end, steps = super().init(terms, t0, t1, y0, dt0, args, func, error_order)
        return end, _State(
            steps,
            jnp.asarray(jnp.inf, y0.dtype),
            jnp.ones((), y0.dtype),
            jnp.asarray(end - t0),
            jnp.zeros((), y0.dtype),
        )

    def adapt_step_size(
        self,
        t0: Any,
        t1: Any,
        y0: Array,
        y1_candidate: Array,
        args: Any,
        y_error: Array,
        error_order: Any,
        controller_state: _State,
    ) -> Any:
        """As in diffrax, with the error in units of what is allowed."""
        steps, rejected, last_ratio, last_length, usual_motion = controller_state
        # The motion is of first order in the step, so the ratio is of one order less than the error.
        order = error_order - 1
        length, motion = t1 - t0, self.norm(y1_candidate - y0)
        rounding = 16 * jnp.finfo(y0.dtype).eps * self.norm(y0)
        allowed = self.atol + rounding + self.rtol * motion
        ratio = self.norm(y_error) / allowed
        foretold = last_ratio * (length / last_length).astype(y0.dtype) ** order
        suspect = (ratio >= 1) & (ratio > 100 * foretold)
        at_kink = suspect & (ratio > rejected / 2)
        across = jnp.maximum(_KINK_TOLERANCE, self.rtol)
        allowed = jnp.where(at_kink, jnp.maximum(allowed, across * usual_motion), allowed)

        relative = diffrax.PIDController(
            rtol=0.0, atol=1.0, dtmin=self.dtmin, force_dtmin=self.force_dtmin, error_order=order
        )
        kept, next_t0, next_t1, made_jump, steps, result = relative.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error / allowed, None, steps
        )
        # Half the step tells a kink from a step that was merely too long.
        next_t1 = jnp.where(suspect & ~kept, t0 + length / 2, next_t1)
        smooth = kept & ~at_kink
        # A step with a tiny error was short for another reason: it came before or after a kink.
        motion = jnp.where(ratio > 0.01, motion, jnp.maximum(motion, usual_motion))
        state = _State(
            steps,
            jnp.where(kept, jnp.inf, ratio),
            jnp.where(smooth, jnp.maximum(ratio, 1e-9), last_ratio),
            jnp.where(smooth, length, last_length),
            jnp.where(smooth, motion, usual_motion),
        )
        return kept, next_t0, next_t1, made_jump, state, result
