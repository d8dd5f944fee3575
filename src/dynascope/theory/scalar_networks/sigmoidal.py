"""Sigmoidal modes: trajectory, emergence and saturation of one direction of the data in a two-layer network.

A two-layer diagonal network is a set of independent modes. The same holds for a two-layer linear network whose layers
are aligned with the singular vectors of whitened data. Each mode has the strength R = a b, the target S and the input
power λ, and performs gradient descent on λ (S − a b)²/2.
"""

from __future__ import annotations

import functools
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Interval
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import ALIGNED_LAYERS, UNCORRELATED_INPUTS
from dynascope.theory.domain import covers
from dynascope.theory.kernels import all_finite, broadcast, nan_outside
from dynascope.theory.scalar_networks.growth import growth_factor
from dynascope.theory.scalar_networks.passage_time import time_to_reach
from dynascope.theory.units import in_units
from dynascope.validation import is_traced, require
from dynascope.validation.bounded import FiniteArray, NonNegativeArray, PositiveArray

__all__ = [
    "ModeStrength",
    "emergence_and_saturation",
    "emergence_time",
    "emerging_modes",
    "linear_mode_strength",
    "mode_strength",
    "saturation_time",
]

_STANDARDS = ("target|initial_output_weight|initial_input_weight", "input_power", "learning_rate")
_UNITS: dict[str, Any] = {
    "target": "w^2",
    "input_power": "p",
    "initial_output_weight": "w",
    "initial_input_weight": "w",
    "learning_rate": "p^-1 w^-2 t^-1",
}


_covers = functools.partial(
    covers,
    network="two-layer diagonal, or linear with aligned layers",
    data="uncorrelated inputs (linear: whitened)",
    start="any",
    assumes=(UNCORRELATED_INPUTS, ALIGNED_LAYERS),
)


class ModeStrength(NamedTuple):
    """Trajectory of a mode, in arrays with the broadcast shape.

    Attributes:
        output_weight: a.
        input_weight: b.
        strength: R = a b.
        residual: S − a b, computed without cancellation. The loss of the mode is λ·residual²/2.
    """

    output_weight: Float[AnyArray, ...]
    input_weight: Float[AnyArray, ...]
    strength: Float[AnyArray, ...]
    residual: Float[AnyArray, ...]

    __repr__ = short_repr


@_covers(
    gives="the weights and the strength of each mode at any time",
    reference="arXiv:1312.6120",
)
@in_units(*_STANDARDS, **_UNITS, times="t", gives=("w", "w", "w^2", "w^2"))
def mode_strength(
    times: NonNegativeArray,
    target: FiniteArray,
    input_power: PositiveArray,
    initial_output_weight: FiniteArray,
    initial_input_weight: FiniteArray,
    learning_rate: PositiveArray = 1.0,
) -> ModeStrength:
    """Compute the exact gradient flow of a mode, from any initial weights.

    da/dt = η λ b (S − a b), db/dt = η λ a (S − a b)

    The flow conserves a² − b². With c, d = (a₀ ± b₀)/2 the layers are a, b = c √g ± d/√g, where g is the growth factor
    with C = c², D = d², k = 2 η λ. For a₀ = b₀ > 0 the strength is the logistic function
    R = S/(1 + (S/R₀ − 1) exp(−2 η λ S t)).

    All arguments broadcast. The function can be compiled and differentiated.

    Args:
        times: Gradient-flow times t ≥ 0.
        target: S, of any sign.
        input_power: λ = E[x²] > 0 of the input of the mode; 1 for whitened data.
        initial_output_weight: a₀.
        initial_input_weight: b₀.
        learning_rate: η > 0, equal for both layers.

    Raises:
        InputError: If a value is not finite, t < 0, λ ≤ 0, η ≤ 0, or shapes do not match. Inside `jit`, values outside
            this domain give NaN.

    References:
        Nam, DPhil thesis (2024), chapters 3 and 6; Saxe, McClelland & Ganguli, arXiv:1312.6120, for a₀ = b₀.

    Example:
        >>> mode = mode_strength(2.0, 1.0, 0.7, 0.5, -0.2)
        >>> print(f"{mode.output_weight:.6f} {mode.input_weight:.6f} {mode.strength:.6f}")
        0.643328 0.451521 0.290476
    """
    return _mode_strength(
        *broadcast(
            times=times,
            target=target,
            input_power=input_power,
            initial_output_weight=initial_output_weight,
            initial_input_weight=initial_input_weight,
            learning_rate=learning_rate,
        )
    )


@covers(
    network="one-layer linear",
    data="uncorrelated inputs",
    start="zero",
    gives="the strength of each mode at any time",
    reference="Nam, DPhil thesis (2024), 3.10",
    assumes=(UNCORRELATED_INPUTS,),
)
def linear_mode_strength(
    times: NonNegativeArray,
    target: FiniteArray,
    input_power: PositiveArray,
    learning_rate: PositiveArray = 1.0,
) -> Float[AnyArray, ...]:
    """Compute the strength of a mode in a one-layer model with zero initial weights.

    R = S (1 − exp(−η λ t))

    All arguments broadcast.

    Args:
        times: Gradient-flow times t ≥ 0.
        target: S.
        input_power: λ > 0.
        learning_rate: η > 0.

    Raises:
        InputError: As for `mode_strength`. Inside `jit`, values outside this domain give NaN.

    Example:
        >>> print(f"{linear_mode_strength(1.0, 2.0, 0.5):.4f}")
        0.7869
    """
    return _linear_strength(
        *broadcast(times=times, target=target, input_power=input_power, learning_rate=learning_rate)
    )


@_covers(gives="the time at which a mode reaches a fraction of its target", reference="Nam, DPhil thesis (2024), 3.12")
@in_units(*_STANDARDS, **_UNITS, gives="t", infinite=True)
def emergence_time(
    target: FiniteArray,
    input_power: PositiveArray,
    initial_output_weight: FiniteArray,
    initial_input_weight: FiniteArray,
    learning_rate: PositiveArray = 1.0,
    *,
    fraction: Annotated[ArrayLike, Interval(gt=0, lt=1)] = 0.05,
) -> Float[AnyArray, ...]:
    """Compute the first time at which a mode reaches the fraction ε of its target.

    For a₀ = b₀ with R₀ = a₀ b₀ < ε S, the time is τ = ln[(S/R₀ − 1)/(1/ε − 1)]/(2 η λ S).

    Args:
        target: S ≠ 0.
        input_power: λ > 0.
        initial_output_weight: a₀.
        initial_input_weight: b₀.
        learning_rate: η > 0.
        fraction: ε, between 0 and 1.

    Returns:
        Gradient-flow times in the broadcast shape: 0 for a mode with R₀/S ≥ ε, and ∞ for a mode that never emerges. The
        initial weights of such a mode lie exactly on the path into the saddle at zero.

    Raises:
        InputError: If S = 0, ε is not between 0 and 1, or as for `mode_strength`. Inside `jit`, values outside this
            domain give NaN.

    References:
        Nam, DPhil thesis (2024), equation 3.12.

    Example:
        >>> with jax.enable_x64(True):
        ...     print(f"{emergence_time(5.0, 1.0, 0.01, 0.01):.6f}")
        0.787532
    """
    start = (target, input_power, initial_output_weight, initial_input_weight, learning_rate)
    return _emergence_time(*emerging_modes(*start, fraction))


@_covers(gives="the time from the emergence of a mode to its saturation", reference="Nam, DPhil thesis (2024), 3.12")
@in_units(*_STANDARDS, **_UNITS, gives="t", infinite=True)
def saturation_time(
    target: FiniteArray,
    input_power: PositiveArray,
    initial_output_weight: FiniteArray,
    initial_input_weight: FiniteArray,
    learning_rate: PositiveArray = 1.0,
    *,
    fraction: Annotated[ArrayLike, Interval(gt=0, lt=0.5)] = 0.05,
) -> Float[AnyArray, ...]:
    """Compute the time that a mode takes from its emergence, at ε S, to its saturation, at (1 − ε) S.

    For a₀ = b₀ with R₀ = a₀ b₀ < ε S, the time is τ = ln(1/ε − 1)/(η λ S) and does not depend on R₀.

    Args:
        target: S ≠ 0.
        input_power: λ > 0.
        initial_output_weight: a₀.
        initial_input_weight: b₀.
        learning_rate: η > 0.
        fraction: ε, between 0 and ½.

    Returns:
        Gradient-flow times in the broadcast shape: 0 for a mode that is initially saturated, ∞ for a mode that never
        emerges. If a mode has already emerged at t = 0, its time is counted from t = 0.

    Raises:
        InputError: If S = 0, ε is not between 0 and ½, or as for `mode_strength`. Inside `jit`, values outside this
            domain give NaN.

    References:
        Nam, DPhil thesis (2024), equation 3.12.

    Example:
        >>> with jax.enable_x64(True):
        ...     print(f"{saturation_time(5.0, 1.0, 0.01, 0.01):.6f}")
        0.588888
    """
    start = (target, input_power, initial_output_weight, initial_input_weight, learning_rate)
    return _saturation_time(*emerging_modes(*start, fraction))


def emerging_modes(
    target: ArrayLike,
    input_power: ArrayLike,
    initial_output_weight: ArrayLike,
    initial_input_weight: ArrayLike,
    learning_rate: ArrayLike,
    fraction: ArrayLike,
) -> list[Any]:
    """Broadcast the arguments to a common shape, and raise `InputError` if a target is zero."""
    modes = broadcast(
        target=target,
        input_power=input_power,
        initial_output_weight=initial_output_weight,
        initial_input_weight=initial_input_weight,
        learning_rate=learning_rate,
        fraction=fraction,
    )
    require(
        is_traced(modes[0]) or np.all(np.asarray(modes[0]) != 0),
        "target is zero",
        argument="target",
        value=0.0,
        remedy="omit modes whose target is zero",
    )
    return modes


@float64_jit
def emergence_and_saturation(
    target: Array, power: Array, a: Array, b: Array, rate: Array, fraction: Array
) -> tuple[Array, Array]:
    """Return `emergence_time` and `saturation_time`; NaN if the fraction is not between 0 and ½."""
    emerged = _emergence_time(target, power, a, b, rate, fraction)
    never = jnp.isinf(emerged)
    saturated = _emergence_time(target, power, a, b, rate, 1 - fraction)
    lasting = jnp.where(never, jnp.inf, jnp.where(never, 0, saturated) - jnp.where(never, 0, emerged))
    return nan_outside(fraction < 0.5, (emerged, lasting))


@float64_jit
def _saturation_time(*modes: Array) -> Array:
    return emergence_and_saturation(*modes)[1]


@float64_jit
def _emergence_time(target: Array, power: Array, a: Array, b: Array, rate: Array, fraction: Array) -> Array:
    rate = _rate(power, rate)
    sum_part, difference_part, unit = _parts(a, b)
    present = (sum_part**2 - difference_part**2) / target >= fraction
    time = time_to_reach(
        fraction * target,
        target,
        (sum_part / unit) ** 2,
        (difference_part / unit) ** 2,
        rate,
        log_scale=jnp.log(unit),
        unreachable="infinity",
    )
    time = jnp.where(present & ~jnp.isnan(time), 0, time)
    return nan_outside((target != 0) & (fraction > 0) & (fraction < 1), time)


@float64_jit
def _mode_strength(times: Array, target: Array, power: Array, a: Array, b: Array, rate: Array) -> ModeStrength:
    sum_part, difference_part, unit = _parts(a, b)
    growing, shrinking = (sum_part / unit) ** 2, (difference_part / unit) ** 2
    growth = growth_factor(times, target, growing, shrinking, _rate(power, rate), log_scale=jnp.log(unit))
    return ModeStrength(*growth.layers(sum_part, difference_part), growth.strength, growth.residual)


@float64_jit
def _linear_strength(times: Array, target: Array, power: Array, rate: Array) -> Array:
    phase = _rate(power, rate) / 2 * times
    return nan_outside(all_finite(phase, target) & (times >= 0), -target * jnp.expm1(-phase))


def _parts(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Return half the sum and half the difference of the layers, and a unit.

    Relative to the unit, the squares do not underflow.
    """
    unit = jax.lax.stop_gradient(jnp.maximum(jnp.abs(a), jnp.abs(b)))
    return (a + b) / 2, (a - b) / 2, jnp.where(unit == 0, 1, unit)


def _rate(power: Array, rate: Array) -> Array:
    """Return 2 η λ, or NaN unless both are positive."""
    return nan_outside((power > 0) & (rate > 0), 2 * rate * power)
