"""Norms of the two layers during training on inputs along a line."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.theory.line_inputs.decomposition import (
    STANDARDS,
    UNITS,
    Decomposition,
    LineStart,
    decompose,
    end_of_growth,
    root,
    with_trailing_axes,
)
from dynascope.theory.line_inputs.setting import LineData, LineNetwork, covers_line
from dynascope.theory.scalar_networks.passage_time import time_to_reach
from dynascope.theory.units import in_units
from dynascope.validation import require_shape
from dynascope.validation.bounded import NonNegativeArray, PositiveArray

__all__ = ["LayerNorms", "Rescaling", "layer_norms", "rescaling"]


class LayerNorms(NamedTuple):
    """Norms of the layers over time, each of shape (..., times).

    Attributes:
        first: ‖v‖, the norm of v = n·W, the first layer along the line.
        second: ‖u‖.
        total: √(η₁/η₂) ‖u‖² + √(η₂/η₁) ‖v‖² = 2 (P g + Q/g), which together with θ obeys
            d(P g + Q/g)/dt = k (S − θ) θ/γ.
    """

    first: Float[AnyArray, ...]
    second: Float[AnyArray, ...]
    total: Float[AnyArray, ...]

    __repr__ = short_repr


class Rescaling(NamedTuple):
    """Growth or shrinkage of both layers during training, in NumPy arrays of shape (...).

    Attributes:
        case: "grows" (θ moves away from zero), "shrinks" (towards zero), "shrinks, then grows" (through zero) or
            "static".
        turning_time: Time at which the layers are smallest: 0 if they grow or are static, ∞ if they shrink forever.
    """

    case: np.ndarray
    turning_time: Float[np.ndarray, ...]

    __repr__ = short_repr


@covers_line(gives="the norms of both layers at any time")
@in_units(*STANDARDS, **UNITS, times="t", gives={"first": "w", "second": "u", "total": "w u"})
def layer_norms(
    network: LineNetwork,
    data: LineData,
    times: NonNegativeArray,
    *,
    prefactor: PositiveArray = 0.5,
) -> LayerNorms:
    """Compute the norms ‖v‖ and ‖u‖ of both layers over time; they grow and shrink together.

    With c = (η₁/η₂)^¼, both c² ‖u‖² and ‖v‖²/c² change at the rate k (S − θ) θ/γ, so their difference 4Y is conserved.

    Args:
        network: Both initial layers, the multiplier γ and the learning rates η₁ and η₂.
        data: Direction, power and target slope of the data, from `line_data`.
        times: Gradient-flow times t ≥ 0, a scalar or an array of shape (times,).
        prefactor: p > 0 in the loss p E(f − y)².

    Raises:
        InputError: As for `line_trajectory`. Inside `jit`, values outside this domain give NaN.

    References:
        Xu & Ziyin, arXiv:2401.07085, equations 25 and 26.

    Example:
        >>> network = LineNetwork(np.array([[0.0, 2.0]]), np.array([1.0, 0.0]))
        >>> norms = layer_norms(network, LineData(np.ones(1), 1.0, 0.0), 0.0)
        >>> float(norms.first), float(norms.second), float(norms.total)
        (2.0, 1.0, 5.0)
    """
    start = LineStart.checked(network, data, prefactor)
    require_shape("times", times, (), (None,))
    return _layer_norms(start, times)


@covers_line(gives="whether the layers grow, shrink, or shrink and then grow")
@in_units(*STANDARDS, **UNITS, gives={"turning_time": "t"}, infinite=True)
def rescaling(
    network: LineNetwork,
    data: LineData,
    *,
    prefactor: PositiveArray = 0.5,
) -> Rescaling:
    """Predict whether the layers grow, shrink, shrink and then grow, or are static during training.

    If S and θ₀ have the same sign, the layers grow for |S| > |θ₀| and shrink for |S| < |θ₀|. If they have opposite
    signs, the layers shrink until θ = 0 and then grow. If S = θ₀, the layers are static.

    Args:
        network: Both initial layers, the multiplier γ and the learning rates η₁ and η₂.
        data: Direction, power and target slope of the data, from `line_data`.
        prefactor: p > 0 in the loss p E(f − y)².

    Returns:
        The case, and the time at which the layers are smallest.

    Raises:
        InputError: As for `line_trajectory`, or if JAX traces a value.

    References:
        Xu & Ziyin, arXiv:2401.07085, section 2.3.

    Example:
        >>> data = LineData(np.ones(1), 1.0, np.array([2.0, 0.5, -1.0, 1.0]))
        >>> rescaling(LineNetwork(np.array([[1.0, 0.5]]), np.array([1.0, 0.0])), data).case.tolist()
        ['grows', 'shrinks', 'shrinks, then grows', 'static']
    """
    start = LineStart.checked(network, data, prefactor)
    start.require_known()
    initial_state, *numbers = _crossing(start)
    decomposition = Decomposition._make(map(np.asarray, initial_state))
    strength, slope, zero = map(np.asarray, numbers)
    end = end_of_growth(decomposition, strength, slope)
    shrinking = (end.status != "static") & (slope * strength < 0)
    crossing = shrinking & np.isfinite(zero) & (np.asarray(decomposition.target) != 0)
    case = np.select(
        [end.status == "static", crossing, shrinking], ["static", "shrinks, then grows", "shrinks"], "grows"
    )
    return Rescaling(case, np.where(crossing, zero, np.where(shrinking, np.inf, 0.0)))


@float64_jit
def _crossing(network: LineStart) -> tuple[Decomposition, Array, Array, AnyArray]:
    """Return the decomposition, θ₀, S − θ₀, and the time at which θ = 0."""
    start = decompose(network)
    arguments = (start.target, *start.powers, start.rate)
    zero = time_to_reach(0.0, *arguments, log_scale=jnp.log(start.unit), unreachable="infinity")
    return start, start.initial_strength(), start.drive(), zero


@float64_jit
def _layer_norms(network: LineStart, times: Array) -> LayerNorms:
    start = decompose(network)
    growth = start.growth(times)
    squares = [jnp.sum(layer**2, axis=-1) for layer in start.layers(growth)]
    outer, inner = (root(square) for square in squares)
    ratio = with_trailing_axes(start.ratio, growth.log_growth.ndim - start.ratio.ndim)
    return LayerNorms(inner, outer, squares[0] * ratio**2 + squares[1] / ratio**2)
