"""How the two layers turn towards each other, or apart, while they learn inputs along a line."""

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
    behind,
    decompose,
    end_of_growth,
    root,
)
from dynascope.theory.line_inputs.setting import LineData, LineNetwork, covers_line
from dynascope.theory.units import in_units
from dynascope.validation import require_shape
from dynascope.validation.bounded import NonNegativeArray, PositiveArray

__all__ = ["AlignmentChange", "alignment_change", "layer_cosine"]


class AlignmentChange(NamedTuple):
    """What training does to the alignment ζ of the layers, in NumPy arrays of shape (...).

    Attributes:
        initial: ζ at the start.
        final: ζ as t → ∞.
        sign: 1 where ζ increases, −1 where it decreases, 0 where it stays: S = θ₀, or parallel layers that
            do not turn over.
    """

    initial: Float[np.ndarray, ...]
    final: Float[np.ndarray, ...]
    sign: Float[np.ndarray, ...]

    __repr__ = short_repr

    @property
    def size(self) -> Float[np.ndarray, ...]:
        """ζ∞ − ζ₀."""
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
    """The alignment ζ = cos∠(u, v) of the second layer with the first along the line, v = n·W.

    ζ = (P g − Q/g)/√((P g + Q/g)² − 4Y²) = θ/√(θ² + 4γ²(PQ − Y²)), Y = Σ pᵢ qᵢ. As PQ − Y² is conserved, ζ is a
    function of θ alone, and monotone in time. Layers that start parallel stay so, ζ = ±1; in the kernel phase ζ stays
    near zero.

    Args:
        network: Both layers at the start, γ, η₁ and η₂.
        data: As of `line_data`.
        times: Gradient-flow times t ≥ 0, shape (times,), or a single one.
        prefactor: p > 0 of the loss.

    Returns:
        ζ between −1 and 1, shape (..., times); 0 at a time at which a layer vanishes. Values traced by JAX that are
        outside the domain give NaN.

    Raises:
        InputError: As `line_trajectory`.

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


@covers_line(gives="whether the layers will align or disalign, and by how much")
@in_units(*STANDARDS, network=UNITS["network"], data=UNITS["data"])
def alignment_change(
    network: LineNetwork,
    data: LineData,
) -> AlignmentChange:
    """What training will do to the alignment ζ of `layer_cosine`, told before it begins.

    ζ increases if S > θ₀, that is if the network starts below the target, and decreases if S < θ₀; it stays if S = θ₀,
    or if the layers are parallel and the output need not change its sign. For S < 0, "aligned" is ζ → −1. The end is
    ζ∞ = S/√(S² + γ²(‖u‖²‖v‖² − (u·v)²)), with the bracket at the start: gradient flow conserves it. So neither the sign
    nor the size of the change depends on the rates of the layers; they only decide which exactly parallel layers are
    trapped (see `line_limit`).

    Args:
        network: Both layers at the start, γ, η₁ and η₂.
        data: As of `line_data`.

    Returns:
        `AlignmentChange`.

    Raises:
        InputError: As `line_trajectory`, or values traced by JAX.

    References:
        Xu & Ziyin, arXiv:2401.07085, equation 24. (The text there lets the change depend on the ratio of the rates.)

    Example:
        >>> network = LineNetwork(np.array([[1.0, 1.0]]), np.array([1.0, 0.5]))
        >>> change = alignment_change(network, LineData(np.ones(1), 1.0, np.array([2.0, 1.0])))
        >>> print(change.initial.round(4), change.final.round(4), change.sign)
        [0.9487 0.9487] [0.9701 0.8944] [ 1. -1.]
    """
    start = LineStart.checked(network, data)
    start.require_known()
    begun, initial_strength, drive, *cosines = _both_ends(start)
    known = Decomposition._make(map(np.asarray, begun))
    end = end_of_growth(known, initial_strength, drive)
    initial, final = map(np.asarray, cosines)
    parallel = np.asarray(known.distance == 0)
    # Parallel layers that cannot reach the target, or have none, only shrink.
    kept = (end.status == "static") | (parallel & ((end.status != "converges") | (np.asarray(known.target) == 0)))
    final = np.where(kept, initial, final)
    stays = parallel & (final == initial)
    return AlignmentChange(initial, final, np.where(stays, 0.0, np.sign(drive)))


@float64_jit
def _both_ends(known: LineStart) -> tuple[Decomposition, Array, Array, Array, Array]:
    """The decomposition, θ₀, S − θ₀, and the cosine at the start and where θ = S."""
    start = decompose(known)
    initial = _cosine(start.growing_power - start.shrinking_power, start.distance)
    final = _cosine(_bounded(start.target / start.multiplier / start.unit / start.unit), start.distance)
    return start, start.initial_strength(), start.drive(), initial, final


@float64_jit
def _alignment(known: LineStart, times: Array) -> Array:
    start = decompose(known)
    growth = start.growth(times)
    extra = growth.log_growth.ndim - start.unit.ndim
    powers = [behind(power, extra) for power in (start.growing_power, start.shrinking_power)]
    sum_part, difference_part = growth.layers(*(root(power) for power in powers))
    cosine = _cosine(_bounded(sum_part) * _bounded(difference_part), behind(start.distance, extra))
    # Both parts of parallel layers may vanish or underflow, so that only the logarithms tell the larger.
    logarithms = [jnp.log(jax.lax.stop_gradient(power)) for power in powers]
    # A target of zero is approached from one side, until rounding decides.
    grown = jnp.where(behind(start.target == 0, extra), 0, jax.lax.stop_gradient(growth.log_growth))
    larger = jnp.sign(logarithms[0] - logarithms[1] + 2 * grown)
    parallel = behind(start.distance == 0, extra)
    turned = jnp.where(parallel, jnp.where(powers[0] + powers[1] == 0, 0, larger), cosine)
    return nan_outside(~jnp.isnan(growth.log_growth), turned)


def _cosine(strength: Array, distance: Array) -> Array:
    """θ/√(θ² + 4D²) of numbers in the same units, and 0 for 0/0."""
    size = jnp.hypot(jnp.where(strength == 0, 1, strength), 2 * distance)
    return jnp.where(strength == 0, 0, strength / size)


def _bounded(value: AnyArray) -> Array:
    """A size whose square does not overflow; beyond it layers are aligned to the last digit."""
    largest = float(jnp.finfo(value.dtype).max) ** 0.2
    return jnp.clip(value, -largest, largest)
