"""Final sign of the output weight of a neuron."""

from __future__ import annotations

from typing import Any

import diffrax
import jax.numpy as jnp
from jax import Array

from dynascope.theory.neuron.coordinates import chart_at, integrate, map_members, polar

__all__ = ["ROUNDING", "integrated_sign", "whitened_sign"]

ROUNDING = 1e-12  # relative size below which a force, or the component c₊ along the growing direction, counts as zero
_LONGEST = 1e6  # time in units of the slowest time scale, after which the flow counts as trapped in the saddle


def whitened_sign(least: Array, a: Array, seen: Array, imbalance: Array) -> Array:
    """Return the final sign of a for whitened inputs, which is the sign of c₊ in the exact solution."""
    reach, target = polar(least)
    omega = jnp.hypot(imbalance / 2, reach)
    upstream = imbalance >= 0
    along = jnp.where(upstream, reach, omega - imbalance / 2)
    out = jnp.where(upstream, omega + imbalance / 2, reach)
    aligned = seen @ target
    component = along * aligned + out * a
    edge = ROUNDING * jnp.hypot(along, out) * jnp.hypot(aligned, a)
    return jnp.where(jnp.abs(component) <= edge, 0, jnp.sign(component))


def integrated_sign(x: Array, a: Array, seen: Array, imbalance: Array, least: Array, certain: Array) -> Array:
    """Integrate the flow until the loss is below the loss of the zero map, and return the sign of a at that time.

    After that time, the sign cannot change. The result is 0 if the flow is trapped in the saddle.
    """
    y = x @ least
    power = jnp.mean(jnp.sum(x**2, axis=1))
    reach = jnp.linalg.norm(x.T @ y) / (len(x) * power)

    def one(a: Array, seen: Array, imbalance: Array, certain: Array) -> Array:
        size, direction = polar(seen)
        forward = jnp.where(a < 0, -1.0, 1.0).astype(a.dtype)
        chart, start = chart_at(x, y, a * seen, jnp.abs(a) * size, forward * direction, imbalance, jnp.ones_like(a))

        def below(state: Any) -> Array:
            function = x @ chart.coefficients(state)
            return function @ (y - function / 2) > 0

        solution = integrate(
            x,
            y,
            chart,
            start,
            _LONGEST * (reach + jnp.abs(imbalance)) / (power * reach**2),
            event=diffrax.Event(lambda t, state, arguments, **_: certain | below(state)),
        )
        assert solution.ys is not None
        direction, log_growth = (values[-1] for values in solution.ys)
        settled = below((direction, log_growth))
        return jnp.where(settled, forward * jnp.sign(chart.radius(log_growth)), 0)

    flat = (value.reshape(-1, *value.shape[a.ndim :]) for value in (a, seen, imbalance, certain))
    return map_members(one, *flat).reshape(a.shape)
