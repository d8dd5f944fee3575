"""Decomposition of the initial weights of a neuron on whitened inputs, for its closed-form solution."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from dynascope.theory.neuron.coordinates import polar
from dynascope.theory.neuron.state import TargetedNeuron

__all__ = ["Decomposition", "decompose"]

_ROUNDING = 1e-12  # size of c₊, relative to p and A, below which it counts as zero


class Decomposition(NamedTuple):
    """Initial weights in units in which both layers have learning rate one.

    A = (η_w/η_a)^¼ a, W = (η_a/η_w)^¼ w, time T = κt

    Attributes:
        ratio: (η_w/η_a)^¼, shape (...). All attributes have this shape unless stated otherwise.
        rate: κ = √(η_a η_w).
        output: A₀.
        aligned: p₀ = β̂*·W₀.
        across: W⊥ = W₀ − p₀ β̂*, shape (..., d).
        across_square: ‖W⊥‖².
        direction: β̂*, zero for a zero target, shape (..., d).
        strength: s = ‖β*‖.
        imbalance: λ = A₀² − ‖W₀‖², zero if it is below its rounding error.
        omega: ω = √(λ²/4 + s²), the rate at which c₊ grows and c₋ shrinks.
        turning_rate: Γ = 2ω + λ.
        along: e_p, the p-component of the growing unit vector (e_p, e_A).
        out: e_A, the A-component of this vector.
        growing: c₊ = e_p p₀ + e_A A₀, zero if it is below its rounding error.
        shrinking: c₋ = e_p A₀ − e_A p₀.
    """

    ratio: Float[Array, ...]
    rate: Float[Array, ...]
    output: Float[Array, ...]
    aligned: Float[Array, ...]
    across: Float[Array, "... d"]
    across_square: Float[Array, ...]
    direction: Float[Array, "... d"]
    strength: Float[Array, ...]
    imbalance: Float[Array, ...]
    omega: Float[Array, ...]
    turning_rate: Float[Array, ...]
    along: Float[Array, ...]
    out: Float[Array, ...]
    growing: Float[Array, ...]
    shrinking: Float[Array, ...]


def decompose(start: TargetedNeuron) -> Decomposition:
    """Decompose validated initial weights, with a common precision and shape."""
    neuron = start.neuron
    (eta_w, eta_a), batch = neuron.rates, start.valid.shape
    dtype = jnp.result_type(*jax.tree.leaves(start))
    a, eta_a, eta_w = (jnp.broadcast_to(jnp.asarray(value, dtype), batch) for value in (neuron.output, eta_a, eta_w))
    w, beta = (
        jnp.broadcast_to(value.astype(dtype), (*batch, value.shape[-1])) for value in (neuron.weights, start.target)
    )
    rounding = jnp.finfo(a.dtype).eps
    ratio = (eta_w / eta_a) ** 0.25
    output, weights = a * ratio, w / ratio[..., None]
    size, _ = polar(weights)
    strength, direction = polar(beta)
    aligned = jnp.sum(direction * weights, axis=-1)
    across = weights - aligned[..., None] * direction

    imbalance = _unless_small((output - size) * (output + size), 4 * rounding * (output**2 + size**2))
    upstream = imbalance >= 0
    # At λ = s = 0 the limit from upstream is used, so that derivatives exist there too.
    moving = (strength > 0) | (imbalance != 0)
    half = jnp.where(upstream, imbalance, -imbalance) / 2
    omega = jnp.where(moving, jnp.hypot(half, jnp.where(moving, strength, 1)), half)
    large = omega + half
    safe = jnp.where(moving, large, 1)
    length = jnp.hypot(safe, strength)
    major, minor = safe / length, strength / length
    along, out = jnp.where(upstream, minor, major), jnp.where(upstream, major, minor)
    summed = along * jnp.sum(jnp.abs(direction * weights), axis=-1)
    edge = max(_ROUNDING, 8 * rounding) * jnp.hypot(aligned, output) + 8 * rounding * summed
    return Decomposition(
        ratio=ratio,
        rate=jnp.sqrt(eta_a) * jnp.sqrt(eta_w),
        output=output,
        aligned=aligned,
        across=across,
        across_square=jnp.sum(across**2, axis=-1),
        direction=direction,
        strength=strength,
        imbalance=imbalance,
        omega=omega,
        turning_rate=jnp.where(upstream, 2 * large, 2 * strength * (strength / safe)),
        along=along,
        out=out,
        growing=_unless_small(along * aligned + out * output, edge),
        shrinking=along * output - out * aligned,
    )


def _unless_small(value: Array, edge: Array) -> Array:
    """Return the value, or zero if it is below the edge; the derivatives are those of the value in both cases."""
    return value - jax.lax.stop_gradient(jnp.where(jnp.abs(value) <= edge, value, 0))
