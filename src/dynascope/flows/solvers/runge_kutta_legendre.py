"""A matrix-free solver for stiff gradient flows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import diffrax
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

__all__ = ["RungeKuttaLegendre", "legendre_step"]

_State = tuple[Float[Array, " p"], Float[Array, " p"], Float[Array, ""]]


class RungeKuttaLegendre(diffrax.AbstractAdaptiveSolver):
    """Second-order Runge–Kutta–Legendre method, which is stable for step sizes of order s² with s stages.

    The Jacobian of a gradient flow is minus the Hessian, so its spectrum is real, and stability depends on the negative
    real axis only. With s stages, the method is stable for h·ρ ≤ (s² + s − 2)/2, where ρ is the largest curvature.
    Accuracy determines the step size h, and each step uses as many stages s as h requires. The method is matrix-free,
    so it suits networks and ensembles of any size, even if their curvatures differ widely. One power iteration per step
    (one Hessian-vector product) tracks the largest curvature.

    The state must be a single vector, and the vector field must be autonomous.

    References:
        Meyer, Balsara & Aslam, J. Comput. Phys. 257 (2014) 594, equations 16–18 (the method); Sommeijer, Shampine &
        Verwer, J. Comput. Appl. Math. 88 (1998) 315, equation 2.7 (the error estimate).

    Example:
        >>> import numpy as np
        >>> steps = diffrax.PIDController(rtol=1e-4, atol=1e-7)
        >>> decay = diffrax.ODETerm(lambda t, y, rates: -rates * y)
        >>> end = diffrax.diffeqsolve(
        ...     decay, RungeKuttaLegendre(), 0, 2, None, np.ones(2), np.array([1.0, 1e4]), stepsize_controller=steps
        ... )
        >>> bool(abs(np.asarray(end.ys)[-1, 0] - np.exp(-2)) < 1e-3), int(end.stats["num_steps"]) < 200
        (True, True)
    """

    term_structure: ClassVar = diffrax.ODETerm
    interpolation_cls: ClassVar[Callable[..., diffrax.ThirdOrderHermitePolynomialInterpolation]] = (
        diffrax.ThirdOrderHermitePolynomialInterpolation
    )
    safety: float = 1.2
    """Safety factor on the estimated curvature, which power iteration approaches from below."""

    def order(self, terms: Any) -> int:
        """Order of convergence."""
        return 2

    def error_order(self, terms: Any) -> int:
        """Order in h of the local error."""
        return 3

    def init(self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any) -> _State:
        """Initialise the velocity, the direction of largest curvature, and the count of velocity evaluations."""
        direction = jax.random.normal(jax.random.key(0), y0.shape, y0.dtype)
        return terms.vf(t0, y0, args), direction / jnp.linalg.norm(direction), jnp.ones((), y0.dtype)

    def func(self, terms: Any, t0: Any, y0: Any, args: Any) -> Any:
        """Evaluate the vector field."""
        return terms.vf(t0, y0, args)

    def step(
        self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any, solver_state: _State, made_jump: Any
    ) -> tuple[Array, Array, dict[str, Array], _State, diffrax.RESULTS]:
        """Take one step from t0 to t1 with as many stages as stability requires."""
        slope, direction, taken = solver_state
        h = jnp.asarray(t1 - t0, y0.dtype)
        y1, end_slope, error, direction, slopes = legendre_step(
            lambda y: terms.vf(t0, y, args), y0, slope, direction, h, self.safety
        )
        dense = {"y0": y0, "y1": y1, "k0": h * slope, "k1": h * end_slope}
        return y1, error, dense, (end_slope, direction, taken + slopes), diffrax.RESULTS.successful


def legendre_step(
    velocity: Callable[[Array], Array], start: Array, slope: Array, direction: Array, step: Array, safety: float = 1.2
) -> tuple[Array, Array, Array, Array, Array]:
    """Take one step of `RungeKuttaLegendre`.

    Args:
        velocity: f of y' = f(y), whose Jacobian is symmetric.
        start: y, a vector.
        slope: f(y).
        direction: Unit vector, the approximate direction of largest curvature.
        step: Step size h.
        safety: Safety factor on the estimated curvature.

    Returns:
        y after the step, its velocity, its error, a better estimate of the direction, and the number of velocity
        evaluations.

    Example:
        >>> import numpy as np
        >>> rates, steep = np.array([1.0, 1e3]), jnp.array([0.0, 1.0])
        >>> step = jax.jit(lambda y, h: legendre_step(lambda y: -rates * y, y, -rates * y, steep, h)[0])
        >>> end = jax.device_get(step(np.ones(2), 0.1))
        >>> bool(abs(end[0] - np.exp(-0.1)) < 1e-3), bool(abs(end[1]) < 1)
        (True, True)
    """
    _, image = jax.jvp(velocity, (start,), (direction,))
    curvature = jnp.linalg.norm(image)
    direction = jnp.where(curvature > 0, image / jnp.where(curvature > 0, curvature, 1), direction)
    # The smallest odd s ≥ 3 with s² + s − 2 ≥ 2hρ; for even s, the end of the stability interval is not damped.
    needed = (jnp.sqrt(9 + 8 * safety * step * curvature) - 1) / 2
    stages = jnp.maximum(3, 2 * jnp.ceil((needed - 1) / 2) + 1)
    width = 4 / (stages**2 + stages - 2)

    def stage(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        j, before, last, _ = carry
        force = velocity(last)
        mu = (2 * j - 1) / j * _weight(j) / _weight(j - 1)
        nu = (1 - j) / j * _weight(j) / _weight(j - 2)
        ahead = mu * last + nu * before + (1 - mu - nu) * start
        ahead += mu * width * step * (force - (1 - _weight(j - 1)) * slope)
        # After the last stage, only the velocity at the end is computed.
        return j + 1, last, jnp.where(j <= stages, ahead, last), force

    initial = (jnp.full((), 2, start.dtype), start, start + width / 3 * step * slope, slope)
    _, _, end, end_slope = jax.lax.while_loop(lambda carry: carry[0] <= stages + 1, stage, initial)
    error = 0.8 * (start - end) + 0.4 * step * (slope + end_slope)
    # A Hessian-vector product costs two evaluations.
    return end, end_slope, error, direction, stages + 2


def _weight(j: Array) -> Array:
    return jnp.where(j < 2, 1 / 3, (j**2 + j - 2) / (2 * j * jnp.maximum(j + 1, 1)))
