"""The start of a neuron in the coordinates in which whitened training has a closed form."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from dynascope.errors import InputError
from dynascope.theory.modes.growth import real_array
from dynascope.theory.neuron.function_space import polar, require_vector

__all__ = ["Decomposition", "decompose"]

_ROUNDING = 1e-12  # size of c₊, relative to p and A, below which they count as cancelled


class Decomposition(NamedTuple):
    """The start in units in which both layers have rate one, A = (η_w/η_a)^¼ a and W = (η_a/η_w)^¼ w, time T = κt.

    Attributes:
        ratio: (η_w/η_a)^¼, shape (...), as all that follow unless stated.
        rate: κ = √(η_a η_w).
        output: A₀.
        aligned: p₀ = β̂*·W₀.
        across: W⊥ = W₀ − p₀ β̂*, shape (..., d).
        across_square: ‖W⊥‖².
        direction: β̂*, zero for a zero target, shape (..., d).
        strength: s = ‖β*‖.
        imbalance: λ = A₀² − ‖W₀‖², zero if it is no larger than its rounding.
        omega: ω = √(λ²/4 + s²), the rate at which c₊ grows and c₋ shrinks.
        turning_rate: Γ = 2ω + λ.
        along: e_p, the part of the growing unit vector (e_p, e_A) in p.
        out: e_A, its part in A.
        growing: c₊ = e_p p₀ + e_A A₀, zero if it is no larger than its rounding.
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


def decompose(
    initial_output: Real[ArrayLike, ...],
    initial_weights: Real[ArrayLike, "... d"],
    target: Real[ArrayLike, "... d"],
    output_rate: Real[ArrayLike, ...],
    weight_rate: Real[ArrayLike, ...],
) -> Decomposition:
    """Check the start and take it apart; the leading dimensions of all arguments broadcast."""
    a, w = real_array("initial_output", initial_output), require_vector("initial_weights", initial_weights)
    beta = require_vector("target", target, w.shape[-1])
    eta_a, eta_w = real_array("output_rate", output_rate, above=0), real_array("weight_rate", weight_rate, above=0)
    dtype = jnp.result_type(a, w, beta, eta_a, eta_w)
    shapes = {
        "initial_weights": w.shape[:-1],
        "initial_output": a.shape,
        "target": beta.shape[:-1],
        "output_rate": eta_a.shape,
        "weight_rate": eta_w.shape,
    }
    batch = broadcast(**shapes)
    scalars = (jnp.broadcast_to(value.astype(dtype), batch) for value in (a, eta_a, eta_w))
    vectors = (jnp.broadcast_to(value.astype(dtype), (*batch, w.shape[-1])) for value in (w, beta))
    return _decompose(*scalars, *vectors)


def broadcast(**shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape, or `InputError` with the name of the first argument that does not fit those before it."""
    common = ()
    for name, shape in shapes.items():
        try:
            common = jnp.broadcast_shapes(common, shape)
        except ValueError:
            raise InputError(
                f"{name} is for a batch of shape {shape} and what stands before it for one of {common}",
                argument=name,
                value=shape,
                remedy="give batch dimensions that broadcast",
            ) from None
    return common


@jax.jit
def _decompose(a: Array, eta_a: Array, eta_w: Array, w: Array, beta: Array) -> Decomposition:
    rounding = jnp.finfo(a.dtype).eps
    ratio = (eta_w / eta_a) ** 0.25
    output, weights = a * ratio, w / ratio[..., None]
    size, _ = polar(weights)
    strength, direction = polar(beta)
    aligned = jnp.sum(direction * weights, axis=-1)
    across = weights - aligned[..., None] * direction

    imbalance = _unless_small((output - size) * (output + size), 4 * rounding * (output**2 + size**2))
    upstream = imbalance >= 0
    # At λ = s = 0 all is taken as the limit from upstream, so that derivatives exist there too.
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
    """The value, or zero below the edge, with the derivatives of the value."""
    return value - jax.lax.stop_gradient(jnp.where(jnp.abs(value) <= edge, value, 0))
