"""Radial and angular speed of a neuron's linear map."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.theory.kernels import nan_outside
from dynascope.theory.layer_rates import LayerRates, clock_of
from dynascope.theory.neuron.coordinates import parts, polar
from dynascope.theory.neuron.function_space import MapStart, covers_map
from dynascope.theory.neuron.state import Vector
from dynascope.theory.units import in_units
from dynascope.validation import is_traced, require, require_broadcast, require_shape
from dynascope.validation.bounded import FiniteArray

__all__ = ["NeuronSpeeds", "neuron_speeds"]


class NeuronSpeeds(NamedTuple):
    """Speeds of the norm and of the direction of β = a w.

    Attributes:
        radial: |d‖β‖/dt|, shape (...).
        angular: ‖dβ̂/dt‖, shape (...).
        first_layer_share: (R + δ)/(2R), the share of the first layer in d ln‖β‖/dt, shape (...).
    """

    radial: Float[AnyArray, ...]
    angular: Float[AnyArray, ...]
    first_layer_share: Float[AnyArray, ...]

    __repr__ = short_repr


@covers_map(data="any inputs, any targets", gives="the speeds of the norm and of the direction of the linear map")
@in_units(
    "coefficients",
    "gradient",
    "rates.second",
    coefficients="b",
    gradient="g",
    imbalance="b g^-1 t^-1",
    rates={"first": "g^-1 t^-1", "second": "g^-1 t^-1"},
    gives={"radial": "b t^-1", "angular": "t^-1"},
)
def neuron_speeds(
    coefficients: Vector,
    gradient: Vector,
    imbalance: FiniteArray,
    *,
    rates: LayerRates = LayerRates(),
) -> NeuronSpeeds:
    """Compute how fast the norm and the direction of the map β = a w of a neuron f(x) = a wᵀx change.

    |d‖β‖/dt| = R |β̂·g|, ‖dβ̂/dt‖ = (R + δ)/(2 ‖β‖) ‖g − β̂ (β̂·g)‖, R = √(δ² + 4 η_a η_w ‖β‖²)

    Here g = ∂L/∂β is the gradient. For a small map, ‖β‖ ≪ |δ|/(2κ) with κ = √(η_a η_w), the factors of the
    gradient are |δ| and δ/‖β‖ for δ > 0 (upstream), 2κ ‖β‖ and κ for δ = 0, and |δ| and κ² ‖β‖/|δ| for δ < 0
    (downstream). The direction therefore turns before the norm grows if δ > 0, and after the norm is fitted if δ < 0.

    A neuron f(x) = a σ(w·x) with a leaky ReLU σ follows the same law for the gradient of its activation pattern.

    Args:
        coefficients: β, not zero, shape (..., d).
        gradient: g, shape (..., d).
        imbalance: δ = η_w a² − η_a ‖w‖²; all leading dimensions broadcast.
        rates: Learning rates η_w of the weights w and η_a of the output weight a.

    Returns:
        The two speeds, and the share of the first layer in the growth rate d ln‖β‖/dt. The function is differentiable
        where the speeds are positive.

    Raises:
        InputError: If a value is not finite, a rate is not positive, shapes do not match, or β is zero. Inside `jit`,
            values outside this domain give NaN.

    References:
        Kunin, Raventós, Dominé, Chen, Klindt, Saxe, Ganguli, arXiv:2406.06158, section 3, here with learning rates.

    Example:
        >>> speeds = neuron_speeds(np.array([0.06, 0.08]), np.array([-0.5, 0.2]), np.array([-10.0, 0.0, 10.0]))
        >>> speeds.radial.round(4).tolist(), speeds.angular.round(4).tolist()
        ([1.4003, 0.028, 1.4003], [0.0052, 0.52, 52.0052])
    """
    beta, g = coefficients, gradient
    start = MapStart.checked("coefficients", beta, imbalance, rates)
    require_shape("gradient", g, (..., np.shape(beta)[-1]))
    require_broadcast(coefficients=np.shape(beta)[:-1], gradient=np.shape(g)[:-1], imbalance=np.shape(start.imbalance))
    require(
        is_traced(beta) or (np.asarray(beta) != 0).any(axis=-1).all(),
        "coefficients is zero",
        argument="coefficients",
        value=0.0,
        remedy="give nonzero coefficients, because the zero map has no direction",
    )
    return _speeds(start, g)


@float64_jit
def _speeds(start: MapStart, gradient: Array) -> NeuronSpeeds:
    size, direction = polar(start.coefficients)
    output_part, weight_part = parts(size, start.imbalance, clock_of(start.rates))
    total = output_part + weight_part
    along = jnp.sum(direction * gradient, axis=-1)
    across, _ = polar(gradient - along[..., None] * direction)
    inside = start.valid & (size > 0) & jnp.all(jnp.isfinite(gradient), axis=-1)
    nonzero = jnp.where(inside, size, 1)
    share = output_part / jnp.where(inside, total, 1)
    speeds = NeuronSpeeds(total * jnp.abs(along), output_part / nonzero * across, share)
    return nan_outside(inside, NeuronSpeeds(*jnp.broadcast_arrays(*speeds)))
