"""Change of a neuron's tangent kernel, in direction and in size."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import ENOUGH_SAMPLES, ONE_OUTPUT, WHITE_INPUTS
from dynascope.theory.domain import covers
from dynascope.theory.kernels import nan_outside
from dynascope.theory.layer_rates import LayerRates
from dynascope.theory.neuron.coordinates import polar
from dynascope.theory.neuron.state import Neuron, Vector
from dynascope.validation import is_traced, require, require_broadcast
from dynascope.validation.bounded import FiniteArray

__all__ = ["KernelChange", "kernel_change"]


class KernelChange(NamedTuple):
    """Two measures of the difference between tangent kernels K₀ and K, with the broadcast shape of the arguments.

    Attributes:
        distance: S = 1 − ⟨K₀, K⟩/(‖K₀‖ ‖K‖) in the Frobenius inner product, between 0 and 1. S does not depend on the
            scale of the kernels: a balanced neuron has S = sin²∠(w₀, w)/(d + 3), which vanishes in high dimension no
            matter how much the neuron learns.
        relative_change: ρ = ‖K − K₀‖/‖K₀‖, which depends on the scale.
    """

    distance: Float[AnyArray, ...]
    relative_change: Float[AnyArray, ...]

    __repr__ = short_repr


@covers(
    network="single linear neuron f(x) = a wᵀx, layer-wise rates",
    data="whitened inputs, any targets",
    start="any",
    gives="the change of the tangent kernel between two states",
    reference="arXiv:2406.06158",
    assumes=(ONE_OUTPUT, ENOUGH_SAMPLES, WHITE_INPUTS),
)
def kernel_change(
    initial_output: FiniteArray,
    initial_weights: Vector,
    output: FiniteArray,
    weights: Vector,
    *,
    rates: LayerRates = LayerRates(),
) -> KernelChange:
    """Measure the change of the tangent kernel from one state of a neuron to another, on whitened inputs.

    K = X (η_w a² I + η_a w wᵀ) Xᵀ

    With P = η_w a², Q = η_a ‖w‖² and c the cosine between the weights, ⟨K₁, K₂⟩ = d P₁ P₂ + P₁ Q₂ + Q₁ P₂ + Q₁ Q₂ c².
    Both measures are computed from the sum of squares ‖K₁ − K₂‖² = (d−1) (P₁−P₂)² + (P₁−P₂+Q₁−Q₂)² + 2 Q₁ Q₂ (1−c²),
    which avoids cancellation if the change is small. The distance S is half of this sum for kernels of norm one.

    Args:
        initial_output: a of the first state, shape (...).
        initial_weights: w of the first state, shape (..., d). To compare with a `neuron_trajectory`, add a dimension
            for the times: `initial_weights[..., None, :]` and `initial_output[..., None]`.
        output: a of the second state, shape (...).
        weights: w of the second state, shape (..., d).
        rates: Learning rates η_w of the weights and η_a of the output weight, which broadcast with the two states.

    Returns:
        The distance and the relative change. The function can be compiled and differentiated.

    Raises:
        InputError: If a value is not finite, shapes do not match, a rate is not positive, or a state has a = 0 and
            w = 0, so that its kernel vanishes. Inside `jit`, values outside this domain give NaN.

    References:
        Fort et al., arXiv:2010.15110, for S, as used by Kunin et al., arXiv:2406.06158; the closed form is derived
        here.

    Example:
        >>> with jax.enable_x64(True):
        ...     change = kernel_change(1.0, np.array([1.0, 0.0]), 2.0, np.array([0.0, 2.0]))
        ...     print(f"{change.distance:.6f} {change.relative_change:.6f}")
        0.200000 3.255764
    """
    first = Neuron.checked(rates, initial_output=initial_output, initial_weights=initial_weights)
    inputs = first.weights.shape[-1]
    second = Neuron.checked(rates, inputs=inputs, output=output, weights=weights)
    require_broadcast(initial_weights=first.batch, weights=second.batch)
    for state, names in ((first, ("initial_output", "initial_weights")), (second, ("output", "weights"))):
        if not (is_traced(state.output) or is_traced(state.weights)):
            require(
                not np.any((np.asarray(state.output) == 0) & (np.asarray(state.weights) == 0).all(axis=-1)),
                f"{names[0]} and {names[1]} are both zero",
                argument=names[0],
                value=0.0,
                remedy="choose a nonzero output or input weight",
            )
    return _change(first, second)


@float64_jit
def _change(first: Neuron, second: Neuron) -> KernelChange:
    (first_a, first_w, (eta_w, eta_a)), (second_a, second_w, _) = first, second
    dimension = first_w.shape[-1]
    (first_size, first_direction), (second_size, second_direction) = polar(first_w), polar(second_w)
    sum_square = jnp.sum((first_direction + second_direction) ** 2, axis=-1)
    sine_square = sum_square * jnp.sum((first_direction - second_direction) ** 2, axis=-1) / 4

    def parts(a: Array, size: Array) -> tuple[Array, Array, Array, Array]:
        """Return P, Q, ‖K‖ and a unit for P and Q in which their squares do not underflow."""
        out, along = jnp.sqrt(eta_w) * jnp.abs(a), jnp.sqrt(eta_a) * size
        unit = jax.lax.stop_gradient(jnp.maximum(out, along))
        p, q = (out / unit) ** 2, (along / unit) ** 2
        return p, q, jnp.sqrt((dimension - 1) * p**2 + (p + q) ** 2), unit

    def difference(p1: Array, q1: Array, p2: Array, q2: Array) -> Array:
        alone, both = p1 - p2, (p1 - p2) + (q1 - q2)
        return (dimension - 1) * alone**2 + both**2 + 2 * q1 * q2 * sine_square

    p1, q1, norm1, unit1 = parts(first_a, first_size)
    p2, q2, norm2, unit2 = parts(second_a, second_size)
    shrunk, grown = jnp.minimum(1, unit2 / unit1) ** 2, jnp.minimum(1, unit1 / unit2) ** 2
    moved = difference(grown * p1, grown * q1, shrunk * p2, shrunk * q2)
    still = moved == 0
    change = KernelChange(
        distance=difference(p1 / norm1, q1 / norm1, p2 / norm2, q2 / norm2) / 2,
        relative_change=jnp.where(still, 0, jnp.sqrt(jnp.where(still, 1, moved))) / (norm1 * grown),
    )
    valid = first.valid & second.valid
    for a, w, _ in (first, second):
        valid = valid & ((a != 0) | jnp.any(w != 0, axis=-1))
    return nan_outside(valid, change, leading=True)
