"""Stage-like learning: conditions under which one mode saturates before the next one emerges."""

from __future__ import annotations

import math
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Interval
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Bool, Float

from dynascope.compilation import AnyArray, float64_jit
from dynascope.theory.assumptions import UNCORRELATED_INPUTS
from dynascope.theory.domain import covers
from dynascope.theory.kernels import all_finite, broadcast, nan_outside
from dynascope.theory.scalar_networks.sigmoidal import emergence_and_saturation, emerging_modes
from dynascope.validation import is_traced, require, require_known
from dynascope.validation.bounded import FiniteArray, PositiveArray, PositiveFloat

__all__ = ["clean_stages", "is_stage_like", "stage_threshold"]


@covers(
    network="two-layer diagonal",
    data="uncorrelated inputs, neighbouring powers",
    start="equal layers",
    gives="the threshold above which modes are learned one after the other",
    reference="Nam, DPhil thesis (2024), 3.14",
    assumes=(UNCORRELATED_INPUTS,),
)
def stage_threshold(
    target: PositiveArray,
    initial_strength: PositiveArray,
    input_power: PositiveArray,
    next_input_power: PositiveArray,
) -> Float[AnyArray, ...]:
    """Compute the fraction ε* above which one mode saturates before the next one emerges.

    ε* = 1/[1 + (S/R₀ − 1)^q], q = (λ − λ′)/(λ + λ′)

    The formula holds for two balanced modes with the same S and R₀ and with input powers λ > λ′. At ε*, the saturation
    time of the first mode equals the gap between the two emergence times. Learning is stage-like for ε > ε*. (The
    thesis prints q as a factor instead of an exponent, with the opposite sign.) All arguments broadcast.

    Args:
        target: S > 0 of both modes.
        initial_strength: R₀ of both modes, between 0 and S.
        input_power: λ > 0 of the mode learned first.
        next_input_power: λ′ of the mode learned next, between 0 and λ.

    Raises:
        InputError: If a value is out of range, or shapes do not match. Inside `jit`, values outside this domain give
            NaN.

    References:
        Nam, DPhil thesis (2024), equations 3.13 and 3.14, corrected.

    Example:
        >>> with jax.enable_x64(True):
        ...     print(f"{stage_threshold(5.0, 1e-4, 1.0, 0.5):.6f}")
        0.026427
    """
    modes = broadcast(
        target=target,
        initial_strength=initial_strength,
        input_power=input_power,
        next_input_power=next_input_power,
    )
    _require_below("initial_strength", modes[1], "target", modes[0])
    _require_below("next_input_power", modes[3], "input_power", modes[2])
    return _threshold(*modes)


def is_stage_like(
    target: FiniteArray,
    input_power: PositiveArray,
    initial_output_weight: FiniteArray,
    initial_input_weight: FiniteArray,
    learning_rate: PositiveArray = 1.0,
    *,
    fraction: Annotated[ArrayLike, Interval(gt=0, lt=0.5)] = 0.05,
) -> Bool[AnyArray, ...]:
    """Return whether each mode saturates (at 1 − ε) before the next one emerges (at ε), for any initial weights.

    The condition for mode k is τ_k + Δ_k < τ_{k+1}, with τ from `emergence_time` and Δ from `saturation_time`. All
    arguments broadcast. Inside `jit`, values outside the domain give False, because Booleans have no NaN.

    Args:
        target: S ≠ 0 of the modes, along the last axis in the order in which they are learned.
        input_power: λ > 0.
        initial_output_weight: a₀.
        initial_input_weight: b₀.
        learning_rate: η > 0.
        fraction: ε, between 0 and ½.

    Returns:
        One Boolean per pair of neighbouring modes along the last axis.

    Raises:
        InputError: If there is only one mode, or as for `saturation_time`.

    Example:
        >>> is_stage_like(5.0, np.array([1.0, 0.5, 0.4]), 0.01, 0.01).tolist()
        [True, False]
    """
    start = (target, input_power, initial_output_weight, initial_input_weight, learning_rate)
    modes = emerging_modes(*start, fraction)
    shape = np.broadcast_shapes(*map(np.shape, modes))
    require(
        len(shape) > 0 and shape[-1] > 1,
        "target has only one mode",
        argument="target",
        value=shape,
        remedy="give at least two modes along the last axis",
    )
    return _stage_like(*modes)


def clean_stages(
    target: PositiveFloat,
    initial_strength: PositiveFloat,
    spectrum_exponent: PositiveFloat,
    *,
    fraction: Annotated[float, Interval(gt=0, lt=0.5)] = 0.05,
) -> int:
    """Count the modes of a power-law spectrum λₖ ∝ k^−(α+1) that saturate before the next one emerges.

    Mode k is stage-like if tanh[½ (α + 1) ln(1 + 1/k)] ln(S/R₀ − 1) > ln(1/ε − 1). For large k the condition becomes
    k < (α + 1) ln(S/R₀)/[2 ln(1/ε − 1)].

    Args:
        target: S > 0 of every mode.
        initial_strength: R₀ of every mode, between 0 and S.
        spectrum_exponent: α > 0.
        fraction: ε, between 0 and ½.

    Returns:
        The number of modes k = 1, 2, … that satisfy the condition.

    Raises:
        InputError: If an argument is out of range.

    References:
        Nam, DPhil thesis (2024), equation 3.14 with the spectrum of chapter 4.

    Example:
        >>> clean_stages(5.0, 1e-4, 0.6)
        2
    """
    require_known(
        target=target, initial_strength=initial_strength, spectrum_exponent=spectrum_exponent, fraction=fraction
    )
    _require_below("initial_strength", initial_strength, "target", target)
    contrast, margin = math.log(target / initial_strength - 1), math.log(1 / fraction - 1)
    if contrast <= margin:
        return 0
    bound = 1 / math.expm1(2 * math.atanh(margin / contrast) / (spectrum_exponent + 1))
    return math.ceil(bound) - 1


@float64_jit
def _threshold(strength: Array, start: Array, first: Array, second: Array) -> Array:
    inside = all_finite(strength, first) & (start > 0) & (start < strength) & (second > 0) & (second < first)
    exponent = (first - second) / (first + second)
    return nan_outside(inside, jax.nn.sigmoid(-exponent * (jnp.log(strength - start) - jnp.log(start))))


@float64_jit
def _stage_like(*modes: Array) -> Array:
    emerged, lasting = emergence_and_saturation(*jnp.broadcast_arrays(*modes))
    return (emerged + lasting)[..., :-1] < emerged[..., 1:]


def _require_below(name: str, value: Any, bound_name: str, bound: Any) -> None:
    require(
        is_traced(value) or is_traced(bound) or np.all(np.asarray(value) < np.asarray(bound)),
        f"{name} is {value}, but {bound_name} is {bound}",
        argument=name,
        value=str(value),
        remedy=f"choose {name} below {bound_name}",
    )
