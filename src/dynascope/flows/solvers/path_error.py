"""Step sizes that keep the error small beside the path travelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffrax
import jax.numpy as jnp
from jax import Array

__all__ = ["PathErrorController"]


class PathErrorController(diffrax.PIDController):
    """Accept a step if its error is below rtol times the distance it moves.

    A weight that grows from a tiny start shares its array with weights that are large already. An error that is small
    beside the weights would drown it; an error that is small beside the motion does not, so that plateaus are left in
    time and convergence is followed down to rounding. Over a run, the errors add up to at most rtol times the length
    of the path. Distances are root mean squares over the weights; `atol` and the rounding of the weights are allowed
    always.

    The state must be one vector and the field smooth: where a velocity jumps, as when a ReLU neuron switches on a
    sample, the error of a step shrinks no faster than its motion, and steps are refused until they are tiny.

    Example:
        >>> import numpy as np
        >>> decay = diffrax.ODETerm(lambda t, y, args: -y)
        >>> end = diffrax.diffeqsolve(
        ...     decay, diffrax.Tsit5(), 0, 20, None, np.ones(1), stepsize_controller=PathErrorController(1e-3, 0.0)
        ... )
        >>> bool(abs(end.ys.item() / np.exp(-20) - 1) < 0.1)
        True
    """

    def init(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: Array,
        dt0: Any,
        args: Any,
        func: Callable,
        error_order: Any,
    ) -> Any:
        """A first step of a hundredth of the time in which the motion would equal the weights."""
        if dt0 is None:
            size, speed = self.norm(y0), self.norm(func(terms, t0, y0, args))
            moving = (size > 0) & (speed > 0)
            dt0 = jnp.where(moving, 0.01 * size / jnp.where(moving, speed, 1), 1e-6 * (t1 - t0))
        return super().init(terms, t0, t1, y0, dt0, args, func, error_order)

    def adapt_step_size(
        self,
        t0: Any,
        t1: Any,
        y0: Array,
        y1_candidate: Array,
        args: Any,
        y_error: Array,
        error_order: Any,
        controller_state: Any,
    ) -> Any:
        """As in diffrax, with the error in units of what is allowed."""
        rounding = 16 * jnp.finfo(y0.dtype).eps * self.norm(y0)
        allowed = self.atol + rounding + self.rtol * self.norm(y1_candidate - y0)
        # The motion is of first order in the step, so the ratio is of one order less than the error.
        order = error_order - 1
        relative = diffrax.PIDController(rtol=0.0, atol=1.0, dtmin=self.dtmin, force_dtmin=self.force_dtmin)
        return relative.adapt_step_size(t0, t1, y0, y1_candidate, args, y_error / allowed, order, controller_state)
