"""Coordinates in which the function-space flow of a neuron is regular everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
from jax import Array

from dynascope.theory.integration_steps import MOST_STEPS, step_control

__all__ = ["Chart", "chart_at", "integrate", "map_members", "parts", "polar"]


class Chart(NamedTuple):
    """Constants of the coordinates (q, ξ), in which the flow is regular everywhere.

    β = (C g − D/g) ε q, g = exp ξ

    Attributes:
        start: C − D.
        growing: C.
        shrinking: D; zero unless the imbalance is negative.
        unit: ε, the size of the initial direction, so that q is of order one.
        rate: κ = √(η_a η_w).
    """

    start: Array
    growing: Array
    shrinking: Array
    unit: Array
    rate: Array

    def coefficients(self, state: tuple[Array, Array]) -> Array:
        """Return β at a state (q, ξ)."""
        direction, log_growth = state
        return self.radius(log_growth)[..., None] * self.unit * direction

    def radius(self, log_growth: Array) -> Array:
        """Return C g − D/g, which has the sign of a(t)/a(0), without cancellation for small initial weights."""
        rest = jnp.where(log_growth >= 0, self.growing, self.shrinking)
        return self.start * jnp.exp(-jnp.abs(log_growth)) + 2 * rest * jnp.sinh(log_growth)

    def turning(self, log_growth: Array) -> Array:
        """Return τ = (√(C g) − √(D/g)) / (√(C g) + √(D/g))."""
        grown = jnp.sqrt(self.growing) * jnp.exp(log_growth / 2)
        shrunk = jnp.sqrt(self.shrinking) * jnp.exp(-log_growth / 2)
        return self.radius(log_growth) / (grown + shrunk) ** 2


def chart_at(
    x: Array, y: Array, beta: Array, size: Array, direction: Array, delta: Array, kappa: Array
) -> tuple[Chart, tuple[Array, Array]]:
    """Choose a chart for the initial map β = size · direction, and express the map in this chart.

    The chart contains the direction, so the size may be zero if the imbalance is negative.
    """
    output_part, weight_part = parts(size, delta, kappa)
    upstream = delta >= 0
    growing = jnp.where(upstream, output_part, (output_part + weight_part) / 2 + kappa * size) / kappa
    growing = jnp.where(upstream, growing, growing / 2)
    shrinking = jnp.where(upstream, 0, (delta / (4 * kappa)) ** 2 / growing)
    # In the lazy regime e = κβ/P is small; its unit is the larger of the map and an upper bound of its change.
    power = jnp.mean(jnp.sum(x**2, axis=1))
    reach = jnp.linalg.norm(x.T @ (x @ beta - y)) / (len(x) * jnp.where(power == 0, 1, power))
    # The result does not depend on the unit, and the unit is not differentiable at β = 0.
    unit = jax.lax.stop_gradient(jnp.where(upstream, jnp.clip(jnp.maximum(size, reach) / growing, 1e-30, 1), 1.0))
    start = jnp.where(upstream, beta / growing, direction) / unit
    chart = Chart(jnp.where(upstream, growing, size), growing, shrinking, unit, kappa)
    return chart, (start, jnp.zeros_like(size))


def integrate(
    x: Array, y: Array, chart: Chart, start: tuple[Array, Array], duration: Array, **options: Any
) -> diffrax.Solution:
    """Integrate the flow in the coordinates of a chart; the times in `saveat` must not decrease.

    The first call in a process also compiles two small programs of diffrax, which all later calls reuse.
    """

    def velocity(t: Any, state: tuple[Array, Array], arguments: Any) -> tuple[Array, Array]:
        direction, log_growth = state
        gradient = x.T @ (x @ chart.coefficients(state) - y) / len(x)
        along = chart.unit * (direction @ gradient)
        turned = gradient / chart.unit - along * direction
        return -chart.rate * chart.turning(log_growth) * turned, -2 * chart.rate * along

    rounding = 1e2 * float(jnp.finfo(x.dtype).eps)

    return diffrax.diffeqsolve(
        diffrax.ODETerm(velocity),
        diffrax.Dopri8(),
        jnp.zeros_like(duration),
        duration,
        None,
        start,
        stepsize_controller=step_control(max(1e-11, rounding), max(1e-12, rounding / 10), duration),
        max_steps=MOST_STEPS,
        throw=False,
        **options,
    )


def map_members(one: Callable[..., Any], *members: Array) -> Any:
    """Apply a function to each member of a batch.

    A batch of one is not vectorised, because a vectorised solver is slower.
    """
    if len(members[0]) == 1:
        return jax.tree.map(lambda values: values[None], one(*(values[0] for values in members)))
    return jax.vmap(one)(*members)


def parts(size: Array, delta: Array, kappa: Array) -> tuple[Array, Array]:
    """Return η_w a² = (R + δ)/2 and η_a ‖w‖² = (R − δ)/2 for ‖β‖ = size, without cancellation."""
    large = (jnp.hypot(delta, 2 * kappa * size) + jnp.abs(delta)) / 2
    known = large > 0
    small = kappa * size * (kappa * size / jnp.where(known, large, 1))
    upstream = delta >= 0
    return jnp.where(upstream, large, small), jnp.where(upstream, small, large)


def polar(vector: Array) -> tuple[Array, Array]:
    """Return ‖v‖ and v/‖v‖ along the last axis, without underflow; the direction of a zero vector is zero."""
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(vector), axis=-1))
    nonzero = largest > 0
    scaled = vector / jnp.where(nonzero, largest, 1)[..., None]
    norm = jnp.sqrt(jnp.where(nonzero, jnp.sum(scaled**2, axis=-1), 1))
    return jnp.where(nonzero, norm, 0) * largest, scaled / norm[..., None]
