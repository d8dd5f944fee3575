"""Trajectory of a mode of a deep linear network: its strength at any time, and the time to reach a strength."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.compilation import AnyArray, float64_jit
from dynascope.errors import InputError
from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import ALIGNED_LAYERS, BALANCED_LAYERS, ENOUGH_SAMPLES, WHITE_INPUTS
from dynascope.theory.deep_modes.time_map import deep_strength, deep_time
from dynascope.theory.domain import covers
from dynascope.theory.finite_answers import finite_answers
from dynascope.theory.kernels import all_finite, broadcast, nan_outside
from dynascope.theory.scalar_networks.growth import growth_factor
from dynascope.theory.scalar_networks.passage_time import time_to_reach
from dynascope.theory.units import in_units
from dynascope.validation import is_traced, require_known
from dynascope.validation.bounded import FiniteArray, NonNegativeArray, PositiveInt

__all__ = ["DeepModeLimit", "DeepModeStrength", "deep_mode_limit", "strength_at", "time_to_strength"]

_covers = functools.partial(
    covers,
    network="deep linear with aligned layers, any depth",
    data="whitened inputs, any targets",
    start="balanced",
    reference="arXiv:1312.6120",
    assumes=(ENOUGH_SAMPLES, WHITE_INPUTS, BALANCED_LAYERS, ALIGNED_LAYERS),
)


class DeepModeStrength(NamedTuple):
    """Strength of a mode over time, in arrays with the broadcast shape of the arguments.

    Attributes:
        strength: s.
        residual: σ − s, computed without cancellation near the limit. The loss of the mode is residual²/2.
    """

    strength: Float[AnyArray, ...]
    residual: Float[AnyArray, ...]

    __repr__ = short_repr


class DeepModeLimit(NamedTuple):
    """Limit of a mode as t → ∞, in NumPy arrays with the broadcast shape of the arguments.

    Attributes:
        strength: σ, or 0 if the mode is trapped.
        status: "converges" (to σ, exponentially), "power law" (to σ = 0), "saddle" (trapped at 0 ≠ σ, approached
            exponentially for L = 2 and as t^−L/(L−2) for L ≥ 3) or "static" (the initial strength is a fixed point).
    """

    strength: np.ndarray
    status: np.ndarray

    __repr__ = short_repr


@_covers(gives="the time at which a mode has a given strength", infinite=True)
def time_to_strength(
    strength: FiniteArray,
    target: FiniteArray,
    initial_strength: FiniteArray,
    *,
    depth: PositiveInt,
    unreachable: Literal["raise", "infinity"] = "raise",
) -> Float[AnyArray, ...]:
    """Compute the time in which a mode moves from strength s₀ to s, by inverting its trajectory in closed form.

    ds/dt = L s^(2−2/L) (σ − s)

    For L = 1, the time is t = ln[(σ − s₀)/(σ − s)]; for L = 2, it is t = ln[s (σ − s₀)/(s₀ (σ − s))]/(2σ). For L ≥ 3
    and s < σ, it is

        t = (1/σ) [(a₀^(2−L) − a^(2−L))/(L − 2) + c^(2−L) (I(a/c) − I(a₀/c))],  I(x) = ∫₀ˣ z dz/(1 − z^L),

    with a = s^(1/L), c = σ^(1/L). The integral is a sum of logarithms over the roots of unity, or a power series if x^L
    is small. Similar formulas hold for s₀ > σ and for σ of the opposite sign. A mode with s₀ < 0 (L ≥ 2) is the mirror
    image of the mode with −s₀ and −σ. The function can be compiled, and differentiated with respect to all strengths.

    Args:
        strength: s, between s₀ and its limit.
        target: σ; values below 1e-77·|s₀| (in double precision) count as zero.
        initial_strength: s₀.
        depth: Number of layers L ≥ 1.
        unreachable: "raise", or "infinity" to return ∞ for strengths that the mode never reaches. For traced values,
            the function always returns ∞ in this case, and NaN for values that are not finite.

    Returns:
        Gradient-flow times, in the broadcast shape of the arguments: 0 at s₀, ∞ at the limit.

    Raises:
        InputError: If the mode never reaches the strength (for s₀ = 0 with L ≥ 2, any strength but 0), a value is not
            finite, shapes do not match, or the depth is not an integer of at least 1.

    References:
        Saxe, McClelland & Ganguli, arXiv:1312.6120, equation 12, for L = 2; other depths are derived here.

    Example:
        >>> with jax.enable_x64(True):
        ...     print([round(float(time_to_strength(1.0, 2.0, 0.01, depth=L)), 6) for L in (2, 3, 4)])
        [1.323326, 1.977559, 2.393285]
    """
    require_known(depth=depth)
    arguments = broadcast(strength=strength, target=target, initial_strength=initial_strength)
    time, visited = _passage_in_units(depth)(*arguments)
    if unreachable == "raise" and not any(map(is_traced, arguments)):
        known = np.asarray(visited)
        missed = np.broadcast_to(np.asarray(arguments[0]), known.shape)[~known]
        if missed.size:
            raise InputError(
                f"strength is {missed[0]:.6g}, which the mode never reaches",
                argument="strength",
                value=float(missed[0]),
                remedy="choose a strength between the initial strength and the limit",
            )
    return time


@_covers(gives="the strength of each mode at any time")
def strength_at(
    times: NonNegativeArray,
    target: FiniteArray,
    initial_strength: FiniteArray,
    *,
    depth: PositiveInt,
) -> DeepModeStrength:
    """Compute the strength of a mode over time, the inverse of `time_to_strength`.

    The strength has a closed form for L ≤ 2 and for σ = 0. Otherwise it is found by bracketing and Newton's method in
    ln[s/(σ − s)], or in a corresponding variable for s > σ and for σ < 0. In these variables, the trajectory is
    asymptotically linear at both ends, and Newton's method cannot overshoot.

    All arguments broadcast. The result can be compiled and differentiated.

    Args:
        times: Gradient-flow times t ≥ 0.
        target: σ; values below 1e-77·|s₀| (in double precision) count as zero.
        initial_strength: s₀; for L ≥ 2, zero is a fixed point.
        depth: Number of layers L ≥ 1.

    Raises:
        InputError: If t < 0, a value is not finite, shapes do not match, or the depth is not an integer of at least 1.
            Inside `jit`, values outside this domain give NaN.

    References:
        Saxe, McClelland & Ganguli, arXiv:1312.6120; Jacot et al., arXiv:2106.15933, for depth and saddles.

    Example:
        >>> with jax.enable_x64(True):
        ...     print(strength_at(np.arange(3.0), 2.0, 0.01, depth=3).strength.round(6))
        [0.01     0.052802 1.067969]
    """
    require_known(depth=depth)
    known = broadcast(times=times, target=target, initial_strength=initial_strength)
    return _strength_in_units(depth)(*known)


@finite_answers()
def deep_mode_limit(target: FiniteArray, initial_strength: FiniteArray, *, depth: PositiveInt) -> DeepModeLimit:
    """Compute the limit of a mode as t → ∞.

    For L ≥ 2 and σ s₀ ≤ 0, the mode is trapped at s∞ = 0, because it cannot pass through zero. Otherwise s∞ = σ. Both
    strengths broadcast.

    Args:
        target: σ.
        initial_strength: s₀.
        depth: Number of layers L ≥ 1.

    Raises:
        InputError: If a value is not finite or is traced by JAX, shapes do not match, or the depth is not an integer of
            at least 1.

    Example:
        >>> deep_mode_limit([2.0, -2.0, 0.0, 2.0], [0.1, 0.1, 0.1, 0.0], depth=3).status.tolist()
        ['converges', 'saddle', 'power law', 'static']
    """
    require_known(depth=depth, target=target, initial_strength=initial_strength)
    sigma, start = map(np.asarray, broadcast(target=target, initial_strength=initial_strength))
    static = (sigma == start) | ((depth > 1) & (start == 0))
    trapped = (depth > 1) & (sigma * start < 0)
    power_law = (depth > 1) & (sigma == 0)
    return DeepModeLimit(
        np.where(static, start, np.where(trapped, 0.0, sigma)),
        np.select([static, trapped, power_law], ["static", "saddle", "power law"], "converges"),
    )


@functools.cache
def _strength_in_units(layers: int) -> Callable[..., DeepModeStrength]:
    """Return `_strength` with rescaled arguments, in units w^L for strengths and w^(2−2L) for times."""
    size = f"w^{layers}"
    duration = f"w^{2 - 2 * layers}"

    def at(times: Any, target: Any, initial_strength: Any) -> DeepModeStrength:
        return _strength(layers, times, target, initial_strength)

    return in_units("target|initial_strength", times=duration, target=size, initial_strength=size, gives=size)(at)


@functools.cache
def _passage_in_units(layers: int) -> Callable[..., tuple[Any, Any]]:
    """Return `_passage_time` with rescaled arguments, in units w^L for strengths and w^(2−2L) for times."""
    size = f"w^{layers}"
    gives = (f"w^{2 - 2 * layers}", "")

    def passage(strength: Any, target: Any, initial_strength: Any) -> tuple[Any, Any]:
        return _passage_time(layers, strength, target, initial_strength)

    standard = "target|initial_strength"
    return in_units(standard, strength=size, target=size, initial_strength=size, gives=gives, infinite=True)(passage)


def _mirrored(start: Array, *others: Array) -> tuple[Array, ...]:
    """Return the same mode with s₀ ≥ 0, by changing the sign of one layer."""
    sign = jnp.where(start < 0, -1, 1)
    return tuple(sign * each for each in (start, *others))


def _target(target: Array) -> Array:
    """Return the target, or zero if its powers would underflow; in both cases with the derivative of the target."""
    negligible = jnp.abs(target) < jnp.finfo(target.dtype).tiny ** 0.25
    return jnp.where(negligible, target - jax.lax.stop_gradient(target), target)


@functools.partial(float64_jit, static_argnums=0)
def _passage_time(layers: int, *arguments: Array) -> tuple[Array, Array]:
    """Return the time to reach a strength, and whether the mode ever reaches it."""
    strength, target, start = jnp.broadcast_arrays(*arguments)
    time = _time(layers, strength, target, start)
    return nan_outside(all_finite(strength, target, start), time), _visited(layers, strength, target, start)


def _visited(layers: int, strength: Array, target: Array, start: Array) -> Array:
    """Whether a strength is between the initial strength and the limit, inclusive."""
    if layers > 1:
        start, target, strength = _mirrored(start, target, strength)
        target = jnp.where(start == 0, 0, jnp.maximum(target, 0))
    # Comparisons are used because a product of small differences would underflow.
    return ((start <= strength) & (strength <= target)) | ((target <= strength) & (strength <= start))


def _time(layers: int, strength: Array, target: Array, start: Array) -> Array:
    visited = _visited(layers, strength, target, start)
    if layers > 1:
        start, target, strength = _mirrored(start, _target(target), strength)
    resting, limit = strength == start, target if layers == 1 else jnp.maximum(target, 0)
    underway = visited & ~resting & (strength != limit)
    strength, target, start = (
        jnp.where(underway, each, harmless) for each, harmless in ((strength, 0.75), (target, 1.0), (start, 0.5))
    )
    if layers == 1:
        time = jnp.log((target - start) / (target - strength))
    elif layers == 2:
        time = time_to_reach(strength, target, start, 0.0, 2.0, unreachable="infinity")
    else:
        time = deep_time(layers, strength, target, start)
    return jnp.where(underway, time, jnp.where(resting, 0, jnp.inf))


@functools.partial(float64_jit, static_argnums=0)
def _strength(layers: int, *arguments: Array) -> DeepModeStrength:
    times, target, start = jnp.broadcast_arrays(*arguments)
    inside = all_finite(times, target, start) & (times >= 0)
    return nan_outside(inside, DeepModeStrength(*_strength_and_residual(layers, times, target, start)))


def _strength_and_residual(layers: int, times: Array, target: Array, start: Array) -> tuple[Array, Array]:
    """Return the strength and the residual."""
    if layers == 1:
        left = jnp.exp(-times)
        return start * left - target * jnp.expm1(-times), (target - start) * left
    sign = jnp.where(start < 0, -1, 1)
    start, target = _mirrored(start, _target(target))
    if layers == 2:
        path = growth_factor(times, target, start, 0.0, 2.0)
        return sign * path.strength, sign * path.residual
    strength, residual = deep_strength(layers, times, target, start)
    return sign * strength, sign * residual
