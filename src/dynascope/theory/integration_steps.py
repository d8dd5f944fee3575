"""Step-size control for theories that integrate an equation without a closed-form solution."""

from __future__ import annotations

from typing import Any

import diffrax
import jax.numpy as jnp
from jax import Array

__all__ = ["MOST_STEPS", "step_control"]

MOST_STEPS = 2**16
_SHORTEST = 1e-16  # smallest step, as a fraction of the duration; the solver gives up below it


def step_control(relative: float, absolute: float | Array, duration: Array) -> diffrax.PIDController:
    """Return an adaptive step-size controller for the given tolerances; the smallest step is 1e-16 times the duration.

    A step that overflows is rejected, just like a step whose error is too large.

    Example:
        >>> import numpy as np
        >>> decay = diffrax.ODETerm(lambda t, y, rate: -rate * y)
        >>> for rate in np.array([1.0, 1e30]):
        ...     end = diffrax.diffeqsolve(
        ...         decay, diffrax.Tsit5(), 0.0, 9.0, None, np.ones(()), rate,
        ...         stepsize_controller=step_control(1e-3, 1e-6, jnp.asarray(9.0)), max_steps=MOST_STEPS, throw=False,
        ...     )
        ...     print(bool(end.result == diffrax.RESULTS.successful), int(end.stats["num_steps"]) < 99)
        True True
        False True
    """
    usual = diffrax.PIDController(rtol=relative, atol=absolute).norm

    def size(error: Any) -> Array:
        # ∞/∞ is NaN.
        found = usual(error)
        return jnp.where(jnp.isnan(found), jnp.inf, found)

    return diffrax.PIDController(rtol=relative, atol=absolute, norm=size, dtmin=_SHORTEST * duration, force_dtmin=False)
