"""Time at which a mode reaches a given strength: the inverse of the growth-factor solution."""

from __future__ import annotations

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.compilation import AnyArray, float64_jit
from dynascope.errors import InputError
from dynascope.theory.kernels import all_finite, broadcast, nan_outside
from dynascope.theory.scalar_networks.growth import growth_factor, mirrored
from dynascope.theory.units import in_units
from dynascope.validation import is_traced
from dynascope.validation.bounded import FiniteArray, NonNegativeArray, PositiveArray

__all__ = ["time_to_reach"]


@in_units(
    "target|growing|shrinking",
    "rate",
    target="s",
    growing="s",
    shrinking="s",
    rate="s^-1 t^-1",
    strength="s",
    gives="t",
    infinite=True,
)
def time_to_reach(
    strength: FiniteArray,
    target: FiniteArray,
    growing: NonNegativeArray,
    shrinking: NonNegativeArray,
    rate: PositiveArray,
    *,
    log_scale: FiniteArray = 0.0,
    unreachable: Literal["raise", "infinity"] = "raise",
) -> Float[AnyArray, ...]:
    """Compute the time at which the strength θ = C g − D/g of `growth_factor` reaches a given value.

    t = ln(1 + N)/(k r), N = (g₊ + g₋)(g − 1)/[(g₊ − g)(1 + g₋)]

    Here r = √(S² + 4CD), and g₊ and −g₋ are the limits of the forward and backward flows. The time is evaluated without
    cancellation. Derivatives follow from the flow, dt = (dθ − ∂θ/∂parameters)/θ̇, and are zero if the time is infinite.

    Args:
        strength: θ, between its initial value C − D and its limit.
        target: S, of any sign.
        growing: C ≥ 0.
        shrinking: D ≥ 0.
        rate: k > 0.
        log_scale: ln σ for an initialisation scale σ; C and D are replaced by σ²C and σ²D.
        unreachable: "raise", or "infinity" to return ∞ for strengths that the flow never reaches. For values traced by
            JAX, the result is always ∞ in this case, and NaN for parameters outside the domain.

    Returns:
        Gradient-flow times in the broadcast shape: 0 at the initial strength, ∞ at the limit.

    Raises:
        InputError: If the flow never reaches the strength, or as for `growth_factor`.

    References:
        Inverse of the solution in Nam, DPhil thesis (2024), Theorem 1 of chapter 6.

    Example:
        >>> with jax.enable_x64(True):
        ...     print(f"{time_to_reach(1.0, 2.0, 1e-3, 0.0, 1.4):.6f}")
        2.714429
    """
    arguments = broadcast(
        strength=strength,
        target=target,
        growing=growing,
        shrinking=shrinking,
        rate=rate,
        log_scale=log_scale,
    )
    time, outside = _reached(*arguments)
    if unreachable == "raise" and not any(map(is_traced, arguments)):
        outside = np.asarray(outside)
        missed = np.broadcast_to(np.asarray(arguments[0]), outside.shape)[outside]
        if missed.size:
            raise InputError(
                f"strength is {missed[0]:.6g}, which the flow never reaches",
                argument="strength",
                value=float(missed[0]),
                remedy="choose a strength between the initial value and the limit from growth_limit",
            )
    return time


@float64_jit
def _reached(*arguments: Array) -> tuple[Array, Array]:
    """Return the time to reach a strength, and whether the flow never reaches this strength."""
    shaped = jnp.broadcast_arrays(*arguments)
    return _time(*shaped), _passage(*shaped)[1]


@jax.custom_jvp
def _time(*arguments: Array) -> Array:
    return _passage(*arguments)[0]


@_time.defjvp
def _(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    time = _time(*primals)
    strength, target, growing, shrinking, rate, log_scale = primals
    visited = jnp.where(jnp.isfinite(time), time, 0)

    def reached(*parameters: Array) -> Any:
        target, growing, shrinking, rate, log_scale = parameters
        return growth_factor(visited, target, growing, shrinking, rate, log_scale=log_scale).strength

    _, moved = jax.jvp(reached, primals[1:], tangents[1:])
    width = jnp.hypot(strength, 2 * jnp.sqrt(growing * shrinking) * jnp.exp(2 * log_scale))
    speed = rate * (target - strength) * width
    known = jnp.isfinite(time) & (speed != 0)
    slope = jnp.where(known, (tangents[0] - moved) / jnp.where(known, speed, 1), 0)
    return time, jnp.where(jnp.isnan(time), jnp.nan, slope)


def _passage(
    strength: Array, target: Array, growing: Array, shrinking: Array, rate: Array, log_scale: Array
) -> tuple[Array, Array]:
    """Return the time to reach a strength, and whether the flow never reaches this strength."""
    s, unit_c, unit_d, flipped = mirrored(target, growing, shrinking)
    theta = jnp.where(flipped, -strength, strength)
    log_c, log_d = jnp.log(unit_c) + 2 * log_scale, jnp.log(unit_d) + 2 * log_scale
    c, d = jnp.exp(log_c), jnp.exp(log_d)

    # θ, C and D are divided by the largest of them, so that √(θ² + 4CD) does not underflow.
    log_unit = jnp.maximum(jnp.log(jnp.abs(theta)), jnp.maximum(log_c, log_d))
    log_unit = jnp.where(jnp.isfinite(log_unit), log_unit, 0)
    scaled_theta = jnp.sign(theta) * jnp.exp(jnp.log(jnp.abs(theta)) - log_unit)
    scaled_c, scaled_d = jnp.exp(log_c - log_unit), jnp.exp(log_d - log_unit)
    travelled = scaled_theta - (scaled_c - scaled_d)

    limit = jnp.where((unit_c == 0) & (s > 0), 0, s)
    direction = jnp.sign(limit - (c - d)) * jnp.sign(unit_c + unit_d)
    at_start = direction * travelled <= 0
    at_limit = direction * (limit - theta) <= 0
    rounding = 16 * jnp.finfo(theta.dtype).eps
    missed_start = jnp.abs(travelled) > rounding * (scaled_c + scaled_d)
    missed_limit = jnp.abs(theta - limit) > rounding * (limit + c + d)
    outside = jnp.where(at_start, missed_start, at_limit & missed_limit)

    radius, width = _radius(s, c, d), _radius(scaled_theta, scaled_c, scaled_d)
    rising = theta >= 0
    twice_grown = jnp.where(rising, width + scaled_theta, 4 * scaled_c * scaled_d / (width - scaled_theta))
    log_slope = jnp.where(
        rising,
        log_c + jnp.log1p(2 * scaled_d / (width + scaled_theta)),
        log_unit + jnp.log(scaled_c + (width - scaled_theta) / 2),
    )
    unit = jnp.exp(log_unit)
    log_progress = (
        (log_unit + jnp.log(jnp.abs(travelled)) - log_slope)
        + (jnp.log(radius) - jnp.log(jnp.abs(s - theta) / 2))
        - jnp.log((radius + s + unit * twice_grown) / (radius + unit * width))
        - jnp.log1p(2 * d / (radius + s))
    )
    time = jnp.logaddexp(0, log_progress) / (rate * radius)
    time = jnp.where(outside | (at_limit & ~at_start), jnp.inf, jnp.where(at_start, 0, time))
    inside = all_finite(strength, target, growing, shrinking, rate, log_scale)
    return nan_outside(inside & (growing >= 0) & (shrinking >= 0) & (rate > 0), time), outside


def _radius(strength: Array, c: Array, d: Array) -> Array:
    """Return √(θ² + 4CD), bounded away from zero, to avoid 0/0 in quotients with a finite limit."""
    smallest, rounding = jnp.finfo(strength.dtype).tiny, jnp.finfo(strength.dtype).eps
    square = strength**2 + 4 * c * d
    # If the squares underflow, `hypot` does not. The lower bound does not affect the digits of times of order one.
    apart = jnp.maximum(jnp.hypot(strength, 2 * jnp.sqrt(c) * jnp.sqrt(d)), smallest / rounding)
    return jnp.where(square > smallest / rounding, jnp.sqrt(square + smallest), apart)
