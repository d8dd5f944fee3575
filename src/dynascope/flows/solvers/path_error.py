"""Step-size control with an error tolerance relative to the length of the path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffrax
import jax.numpy as jnp
from jax import Array

__all__ = ["PathErrorController"]


class PathErrorController(diffrax.PIDController):
    """Step-size controller that accepts a step if its error is below rtol times the distance that the state moves.

    Small weights that grow from a tiny initialisation share an array with large weights. An error that is small
    relative to the large weights can therefore exceed the small ones. An error that is small relative to the motion
    cannot exceed the small weights, so the flow leaves plateaus at the right time and converges to rounding precision.
    Over a run, the errors add up to at most rtol times the length of the path. Distances are root mean squares over the
    weights. Errors up to `atol`, and up to the rounding error of the weights, are always allowed.

    The state must be a single vector, and the vector field must be smooth. At a discontinuity of the velocity, such as
    that of a ReLU neuron that becomes active on a sample, the error shrinks no faster than the motion, and the steps
    become tiny.

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
        """Choose a first step that moves the weights by about one percent."""
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
        """Adapt the step size as diffrax does, with the error in units of the allowed error."""
        rounding = 16 * jnp.finfo(y0.dtype).eps * self.norm(y0)
        allowed = self.atol + rounding + self.rtol * self.norm(y1_candidate - y0)
        # The motion has first order in the step, so the order of the ratio is one less than that of the error.
        order = error_order - 1
        relative = diffrax.PIDController(rtol=0.0, atol=1.0, dtmin=self.dtmin, force_dtmin=self.force_dtmin)
        return relative.adapt_step_size(t0, t1, y0, y1_candidate, args, y_error / allowed, order, controller_state)
