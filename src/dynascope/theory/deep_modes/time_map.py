"""Closed-form map between the strength of a mode and time for three or more layers, and its inverse.

All quantities are relative to the size of the target: z is the smaller of strength and target divided by the larger,
and u is the time multiplied by |σ|^(2−2/L). The phase n is a coordinate in which a mode moves at a bounded speed,

    below the target    n = ln[s/(σ − s)],   u(n) = −z^(2/L−1)/(L − 2) + ∫ w dw/(1 − w^L),        concave;
    above               n = ln[σ/(s − σ)],   u(n) = ∫ w^(2L−3) dw/(1 − w^L),                        convex;
    opposite sign       n = ln[|σ|/s],       u(n) = ∫ w^(2L−3) dw/(1 + w^L),                        convex,

with integrals from 0 to z^(1/L). In all cases, n and u increase with time.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dynascope.compilation import float64_jit

__all__ = ["deep_strength", "deep_time"]

# For z below the first value, the integrals are power series in z with this number of terms.
_SERIES_BELOW, _TERMS = 0.1, 16
_STEPS = 200


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
@functools.partial(float64_jit, static_argnums=0)
def deep_time(layers: int, strength: Array, target: Array, start: Array) -> Array:
    """Return the time from an initial strength s₀ > 0 to a strength between s₀ and its limit."""
    exponent = 2 - 2 / layers
    below, above, opposite = target > start, (target > 0) & (target <= start), target < 0
    size = jnp.where(target == 0, 1, jnp.abs(target))
    initial_phase, final_phase = (_phase(each, size, below, above) for each in (start, strength))
    scaled = _clock(layers, final_phase, below, opposite) - _clock(layers, initial_phase, below, opposite)
    decay = (strength**-exponent - start**-exponent) / (2 * layers - 2)
    return jnp.where(target == 0, decay, scaled / size**exponent)


@deep_time.defjvp
def _(layers: int, primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    strength, target, start = primals
    time = deep_time(layers, *primals)
    # t(λs, λσ, λs₀) = λ^(2/L−2) t(s, σ, s₀), differentiated by λ.
    ends = [_velocity(layers, each, target, target - each) for each in (strength, start)]
    last, first = (jnp.where(each == 0, 1, each) for each in ends)
    scaled = (2 - 2 / layers) * time + strength / last - start / first
    alone = (strength ** -(3 - 2 / layers) - start ** -(3 - 2 / layers)) / (3 * layers - 2)
    vanishing = _vanishing(target, strength)
    by_target = jnp.where(vanishing, alone, -scaled / jnp.where(vanishing, 1, target))
    return time, tangents[0] / last + by_target * tangents[1] - tangents[2] / first


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
@functools.partial(float64_jit, static_argnums=0)
def deep_strength(layers: int, times: Array, target: Array, start: Array) -> tuple[Array, Array]:
    """Return the strength s ≥ 0 and the residual σ − s at the given times."""
    exponent = 2 - 2 / layers
    moving = (start > 0) & (start != target)
    known_start = jnp.where(moving, start, 0.5)
    known_target = jnp.where(moving, target, 1.0)
    below, above, opposite = known_target > known_start, (known_target > 0) & (known_target <= known_start), target < 0
    size = jnp.where(known_target == 0, 1, jnp.abs(known_target))
    n = _solve(layers, times * size**exponent, _phase(known_start, size, below, above), below, opposite)
    rest = jnp.exp(-n)
    decayed = known_start * jnp.exp(-jnp.log1p((2 * layers - 2) * known_start**exponent * times) / exponent)
    strength = jnp.select([below, above, opposite], [size * jax.nn.sigmoid(n), size * (1 + rest), size * rest], decayed)
    residual = jnp.select([below, above], [size * jax.nn.sigmoid(-n), -size * rest], known_target - strength)
    return jnp.where(moving, strength, start), jnp.where(moving, residual, target - start)


@deep_strength.defjvp
def _(
    layers: int, primals: tuple[Array, ...], tangents: tuple[Array, ...]
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    times, target, start = primals
    strength, residual = deep_strength(layers, *primals)
    exponent = 2 - 2 / layers
    last = _velocity(layers, strength, target, residual)
    first = _velocity(layers, start, target, target - start)
    static = first == 0
    # Near the fixed point at zero, perturbations persist; near the one at the target, they decay.
    back = jnp.exp(-layers * jnp.abs(target) ** exponent * times)
    by_start = jnp.where(static, jnp.where(start == 0, 1, back), last / jnp.where(static, 1, first))
    scaled = exponent * times * last + strength - start * by_start
    alone = (1 - (strength / jnp.where(start == 0, 1, start)) ** (3 - 2 / layers)) / (3 - 2 / layers)
    vanishing = _vanishing(target, strength)
    by_target = jnp.where(vanishing, alone, scaled / jnp.where(vanishing, 1, target))
    by_target = jnp.where(start == 0, 0, jnp.where(static, 1 - back, by_target))
    moved = last * tangents[0] + by_target * tangents[1] + by_start * tangents[2]
    return (strength, residual), (moved, tangents[1] - moved)


def _velocity(layers: int, strength: Array, target: Array, residual: Array) -> Array:
    return layers * strength ** (2 - 2 / layers) * residual


def _vanishing(target: Array, strength: Array) -> Array:
    """Whether a difference quotient in the target is less accurate than its limit at target zero."""
    return jnp.abs(target) <= jnp.sqrt(jnp.finfo(strength.dtype).eps) * strength


def _phase(strength: Array, size: Array, below: Array, above: Array) -> Array:
    gap = jnp.where(below, size - strength, jnp.where(above, strength - size, 1))
    larger = jnp.where(above, size, strength)
    return jnp.where(below | above, jnp.log(larger) - jnp.log(gap), jnp.log(size) - jnp.log(strength))


def _clock(layers: int, n: Array, below: Array, opposite: Array) -> Array:
    """Return u(n) in each of the three cases."""
    wait = jnp.exp((1 - 2 / layers) * jax.nn.softplus(jnp.where(below, -n, 0))) / (layers - 2)
    towards = jnp.where(opposite, 0, n)
    rising = _integral(layers, 2, 1, towards) - wait
    falling = _integral(layers, 2 * layers - 2, 1, towards)
    vanishing = _integral(layers, 2 * layers - 2, -1, jnp.where(opposite, n, 0))
    return jnp.where(below, rising, jnp.where(opposite, vanishing, falling))


def _slope(layers: int, n: Array, below: Array, opposite: Array) -> Array:
    """Return du/dn."""
    log_ratio = jnp.where(opposite, n, -jax.nn.softplus(-n))
    shrinking = (2 - 2 / layers) * log_ratio - jnp.where(opposite, jax.nn.softplus(n), 0)
    return jnp.exp(jnp.where(below, -(1 - 2 / layers) * log_ratio, shrinking)) / layers


def _solve(layers: int, elapsed: Array, initial_phase: Array, below: Array, opposite: Array) -> Array:
    """Return the phase n at which u has increased by `elapsed` from its value at the initial phase.

    Newton's method approaches the root from one side: from the left if u(n) is concave, from the right if it is convex.
    It therefore never overshoots. Bisection ensures convergence from any distance.
    """
    goal = _clock(layers, initial_phase, below, opposite) + elapsed
    fastest, late = (
        1 / _slope(layers, each, below, opposite) for each in (initial_phase, jnp.full_like(initial_phase, jnp.inf))
    )
    slowest = jnp.where(below, fastest, jnp.where(opposite, 0, late))
    fastest = jnp.where(below, layers, fastest)
    tolerance = 4 * jnp.finfo(initial_phase.dtype).eps

    def unfinished(state: tuple[Array, Array, Array, Array]) -> Array:
        low, high, step, count = state
        size = jnp.maximum(1, jnp.maximum(jnp.abs(low), jnp.abs(high)))
        return (count < _STEPS) & jnp.any((jnp.abs(step) > tolerance * size) & (high - low > tolerance * size))

    def narrow(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        low, high, _, count = state
        middle = low + (high - low) / 2
        left = _clock(layers, middle, below, opposite) <= goal
        low, high = jnp.where(left, middle, low), jnp.where(left, high, middle)
        end = jnp.where(below, low, high)
        step = (goal - _clock(layers, end, below, opposite)) / _slope(layers, end, below, opposite)
        low = jnp.where(below, jnp.clip(low + step, low, high), low)
        high = jnp.where(below, high, jnp.clip(high + step, low, high))
        return low, high, step, count + 1

    low, high = initial_phase + slowest * elapsed, initial_phase + fastest * elapsed
    # Beyond this phase, the strength of a mode with a target of the opposite sign underflows.
    high = jnp.where(
        opposite, jnp.minimum(high, jnp.maximum(initial_phase, 0.9 * jnp.log(jnp.finfo(initial_phase.dtype).max))), high
    )
    low, high, *_ = jax.lax.while_loop(unfinished, narrow, (low, high, jnp.full_like(low, jnp.inf), jnp.zeros((), int)))
    return jnp.where(below, low, high)


def _integral(layers: int, power: int, sign: int, n: Array) -> Array:
    """Return ∫₀ˣ w^(k−1)/(1 ∓ w^L) dw with k ≥ 1, x^L = z: z = 1/(1 + e⁻ⁿ) for the upper sign, eⁿ for the lower.

    For k ≤ L the integral is −(1/L) Σ ω^−k ln(1 − xω) over the roots of ω^L = ±1. For larger k, the integrand is
    reduced with the identity w^(k−1)/(1 ∓ w^L) = ±[w^(k−1−L)/(1 ∓ w^L) − w^(k−1−L)].
    """
    log_ratio = -jax.nn.softplus(-n) if sign == 1 else n
    ratio = jnp.exp(log_ratio)
    small = ratio < _SERIES_BELOW
    y = sign * jnp.where(small, ratio, 0)
    total = jnp.zeros_like(ratio)
    for m in reversed(range(_TERMS)):
        total = total * y + 1 / (m * layers + power)
    series = jnp.exp(log_ratio * (power / layers)) * total

    log_x = jnp.where(small, -1, log_ratio / layers)
    x, rest = jnp.exp(log_x), -jnp.expm1(log_x)
    reduced = power - layers if power > layers else power
    logs = jnp.zeros_like(x)
    for index in range(layers):
        angle = np.pi * (2 * index + (sign < 0)) / layers
        if angle == 0:
            # 1 − x = e⁻ⁿ/L if e⁻ⁿ is below the rounding error, so that its logarithm exists for all n.
            late = n > 40
            size = jnp.where(late, -n - math.log(layers), jnp.log(jnp.where(late, 1, rest)))
            logs = logs - size / layers
            continue
        # Without cancellation: |1 − xω|² = (1 − x)² + 4x sin²(φ/2), Re(1 − xω) = 1 − x + 2x sin²(φ/2).
        bend = 2 * x * math.sin(angle / 2) ** 2
        size, turn = jnp.log(rest**2 + 2 * bend) / 2, jnp.arctan2(-x * math.sin(angle), rest + bend)
        logs = logs - (math.cos(reduced * angle) * size + math.sin(reduced * angle) * turn) / layers
    if power > layers:
        logs = sign * (logs - x**reduced / reduced)
    return jnp.where(small, series, logs)
