"""Alignment of the two layers during training on inputs along a line."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.theory.kernels import nan_outside
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
from dynascope.theory.units import in_units
from dynascope.validation import require_shape
from dynascope.validation.bounded import NonNegativeArray, PositiveArray

__all__ = ["AlignmentChange", "alignment_change", "layer_cosine"]


class AlignmentChange(NamedTuple):
    """Change of the alignment ζ of the layers during training, in NumPy arrays of shape (...).

    Attributes:
        initial: ζ at t = 0.
        final: ζ as t → ∞.
        sign: 1 if ζ increases, −1 if it decreases, 0 if it is constant (S = θ₀, or parallel layers whose output keeps
            its sign).
    """

    initial: Float[np.ndarray, ...]
    final: Float[np.ndarray, ...]
    sign: Float[np.ndarray, ...]

    __repr__ = short_repr

    @property
    def size(self) -> Float[np.ndarray, ...]:
        """The change ζ∞ − ζ₀."""
        return self.final - self.initial


@covers_line(gives="the cosine between the layers at any time")
@in_units(*STANDARDS, **UNITS, times="t")
def layer_cosine(
    network: LineNetwork,
    data: LineData,
    times: NonNegativeArray,
    *,
    prefactor: PositiveArray = 0.5,
) -> Float[AnyArray, ...]:
    """Compute the alignment ζ = cos∠(u, v) of the second layer u with v = n·W, the first layer along the line.

    ζ = (P g − Q/g)/√((P g + Q/g)² − 4Y²) = θ/√(θ² + 4γ²(PQ − Y²)), Y = Σ pᵢ qᵢ

    The symbols p, q, P, Q, g and θ are defined in `line_trajectory`. PQ − Y² is conserved, so ζ is a function of θ
    alone and monotone in time. Layers that are initially parallel stay parallel, ζ = ±1. In the kernel regime, ζ stays
    near zero.

    Args:
        network: Both initial layers, the multiplier γ and the learning rates η₁ and η₂.
        data: Direction, power and target slope of the data, from `line_data`.
        times: Gradient-flow times t ≥ 0, a scalar or an array of shape (times,).
        prefactor: p > 0 in the loss p E(f − y)².

    Returns:
        ζ between −1 and 1, shape (..., times); 0 whenever a layer vanishes.

    Raises:
        InputError: As for `line_trajectory`. Inside `jit`, values outside this domain give NaN.

    References:
        Xu & Ziyin, arXiv:2401.07085, equations 20 to 22.

    Example:
        >>> network = LineNetwork(np.array([[0.1, 0.0]]), np.array([0.0, 0.1]))
        >>> data = LineData(np.ones(1), 1.0, 1.0)
        >>> with jax.enable_x64(True):
        ...     print(layer_cosine(network, data, np.arange(3.0)).round(3))
        [0.    0.962 0.999]
    """
    start = LineStart.checked(network, data, prefactor)
    require_shape("times", times, (), (None,))
    return _alignment(start, times)


@covers_line(gives="the sign and size of the change of alignment between the layers")
@in_units(*STANDARDS, network=UNITS["network"], data=UNITS["data"])
def alignment_change(
    network: LineNetwork,
    data: LineData,
) -> AlignmentChange:
    """Predict the change in the alignment ζ of `layer_cosine` during training.

    ζ∞ = S/√(S² + γ²(‖u‖²‖v‖² − (u·v)²))

    The bracket is conserved and evaluated at t = 0. ζ increases if S > θ₀, that is, if the initial slope θ₀ is below
    the target slope S, and decreases if S < θ₀. It is constant if S = θ₀, or if the layers are parallel and the output
    does not have to change its sign. For S < 0, alignment means ζ → −1. Neither the sign nor the size of the change
    depends on the learning rates; the rates only determine which exactly parallel layers are trapped (see
    `line_limit`).

    Args:
        network: Both initial layers, the multiplier γ and the learning rates η₁ and η₂.
        data: Direction, power and target slope of the data, from `line_data`.

    Returns:
        The initial and the final alignment, and the sign of the change.

    Raises:
        InputError: As for `line_trajectory`, or if JAX traces a value.

    References:
        Xu & Ziyin, arXiv:2401.07085, equation 24. (In the paper, the change depends on the ratio of the rates.)

    Example:
        >>> network = LineNetwork(np.array([[1.0, 1.0]]), np.array([1.0, 0.5]))
        >>> change = alignment_change(network, LineData(np.ones(1), 1.0, np.array([2.0, 1.0])))
        >>> print(change.initial.round(4), change.final.round(4), change.sign)
        [0.9487 0.9487] [0.9701 0.8944] [ 1. -1.]
    """
    start = LineStart.checked(network, data)
    start.require_known()
    initial_state, initial_strength, drive, *cosines = _both_ends(start)
    decomposition = Decomposition._make(map(np.asarray, initial_state))
    end = end_of_growth(decomposition, initial_strength, drive)
    initial, final = map(np.asarray, cosines)
    parallel = np.asarray(decomposition.distance == 0)
    # Parallel layers that cannot reach the target, or whose target is zero, only shrink.
    kept = (end.status == "static") | (
        parallel & ((end.status != "converges") | (np.asarray(decomposition.target) == 0))
    )
    final = np.where(kept, initial, final)
    stays = parallel & (final == initial)
    return AlignmentChange(initial, final, np.where(stays, 0.0, np.sign(drive)))


@float64_jit
def _both_ends(network: LineStart) -> tuple[Decomposition, Array, Array, Array, Array]:
    """Return the decomposition, θ₀, S − θ₀, the initial cosine and the cosine at θ = S."""
    start = decompose(network)
    initial = _cosine(start.growing_power - start.shrinking_power, start.distance)
    final = _cosine(_bounded(start.target / start.multiplier / start.unit / start.unit), start.distance)
    return start, start.initial_strength(), start.drive(), initial, final


@float64_jit
def _alignment(network: LineStart, times: Array) -> Array:
    start = decompose(network)
    growth = start.growth(times)
    extra = growth.log_growth.ndim - start.unit.ndim
    powers = [with_trailing_axes(power, extra) for power in (start.growing_power, start.shrinking_power)]
    sum_part, difference_part = growth.layers(*(root(power) for power in powers))
    cosine = _cosine(_bounded(sum_part) * _bounded(difference_part), with_trailing_axes(start.distance, extra))
    # Both parts of parallel layers may vanish or underflow; their logarithms still determine which is larger.
    logarithms = [jnp.log(jax.lax.stop_gradient(power)) for power in powers]
    # A target of zero is approached from one side; the computed growth would eventually change it by rounding.
    grown = jnp.where(with_trailing_axes(start.target == 0, extra), 0, jax.lax.stop_gradient(growth.log_growth))
    larger = jnp.sign(logarithms[0] - logarithms[1] + 2 * grown)
    parallel = with_trailing_axes(start.distance == 0, extra)
    turned = jnp.where(parallel, jnp.where(powers[0] + powers[1] == 0, 0, larger), cosine)
    return nan_outside(~jnp.isnan(growth.log_growth), turned)


def _cosine(strength: Array, distance: Array) -> Array:
    """Return θ/√(θ² + 4D²) for numbers in the same units, and 0 for 0/0."""
    size = jnp.hypot(jnp.where(strength == 0, 1, strength), 2 * distance)
    return jnp.where(strength == 0, 0, strength / size)


def _bounded(value: AnyArray) -> Array:
    """Clip a value so that its square does not overflow; layers with larger values are aligned to the last digit."""
    largest = float(jnp.finfo(value.dtype).max) ** 0.2
    return jnp.clip(value, -largest, largest)
