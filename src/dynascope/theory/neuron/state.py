"""Weights and target of a neuron, with their checks."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from annotated_types import IsFinite
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Bool, Float, Real

from dynascope.results.named_tuples import short_repr
from dynascope.theory.kernels import broadcast_known
from dynascope.theory.layer_rates import LayerRates, positive_rates, rate_shapes
from dynascope.validation import require_broadcast, require_known, require_shape

__all__ = ["RATE_UNITS", "STANDARDS", "UNITS", "Neuron", "TargetedNeuron", "Vector"]

Vector: TypeAlias = IsFinite[Real[ArrayLike, "... d"]]

# The units of the initial weights, rates and target; those listed first are scaled to order one.
RATE_UNITS: dict[str, Any] = {"rates": {"first": "a^-2 t^-1", "second": "w^-2 t^-1"}}
UNITS: dict[str, Any] = RATE_UNITS | {"initial_output": "a", "initial_weights": "w", "target": "a w"}
STANDARDS = ("rates.second", "rates.first", "target|initial_output|initial_weights")


class Neuron(NamedTuple):
    """A neuron f(x) = a wᵀx, or a batch of neurons; concrete values remain NumPy arrays.

    Attributes:
        output: a, shape (...); the leading dimensions of all attributes broadcast.
        weights: w, shape (..., d).
        rates: Learning rates η_w of the first layer and η_a of the second.
    """

    output: Float[Array, ...]
    weights: Float[Array, "... d"]
    rates: LayerRates

    __repr__ = short_repr

    @classmethod
    def checked(cls, rates: LayerRates, *, inputs: int | None = None, **state: Any) -> Neuron:
        """Check the output weight and the weights, passed in this order and keyed by argument name.

        If `inputs` is given, the weights must have this length.
        """
        (output, a), (weights, w) = state.items()
        require_shape(weights, w, (..., inputs))
        require_broadcast(**{weights: w.shape[:-1], output: getattr(a, "shape", ())}, **rate_shapes(rates))
        a, *known = broadcast_known(a, *rates)
        return cls(a, w, LayerRates._make(known))

    @property
    def batch(self) -> tuple[int, ...]:
        """The common shape of the leading dimensions."""
        output = getattr(self.output, "shape", ())
        return require_broadcast(output=output, weights=self.weights.shape[:-1], **rate_shapes(self.rates))

    @property
    def valid(self) -> Bool[Array, ...]:
        """Whether all values are finite and the rates positive."""
        return jnp.isfinite(self.output) & jnp.all(jnp.isfinite(self.weights), axis=-1) & positive_rates(self.rates)


class TargetedNeuron(NamedTuple):
    """The initial weights of a neuron, and its target.

    Attributes:
        neuron: a(0), w(0) and the rates.
        target: β*, shape (..., d); its leading dimensions broadcast with those of the neuron.
    """

    neuron: Neuron
    target: Float[Array, "... d"]

    @classmethod
    def checked(cls, initial_output: Any, initial_weights: Any, target: Any, rates: LayerRates) -> TargetedNeuron:
        """Check the initial weights and the target."""
        state = {"initial_output": initial_output, "initial_weights": initial_weights}
        neuron = Neuron.checked(rates, **state)
        require_shape("target", target, (..., neuron.weights.shape[-1]))
        require_broadcast(initial_output=neuron.batch, target=target.shape[:-1])
        return cls(neuron, target)

    @classmethod
    def known(cls, initial_output: Any, initial_weights: Any, target: Any, rates: LayerRates) -> TargetedNeuron:
        """Check the initial weights and the target, and reject traced values."""
        state = {"initial_output": initial_output, "initial_weights": initial_weights, "target": target}
        require_known(**state, **{f"rates.{name}": each for name, each in rates._asdict().items()})
        return cls.checked(**state, rates=rates)

    @property
    def valid(self) -> Bool[Array, ...]:
        """Whether all values are finite and the rates positive."""
        return self.neuron.valid & jnp.all(jnp.isfinite(self.target), axis=-1)


def weights_of(
    coefficients: np.ndarray, imbalances: np.ndarray, rates: LayerRates = LayerRates()
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights a > 0 and w of the maps β = a w with the given imbalances.

    Args:
        coefficients: β, shape (..., d), not zero.
        imbalances: δ = η_w a² − η_a ‖w‖², shape (...).
        rates: Learning rates η_w of the weights and η_a of the output weight.

    Returns:
        a, shape (...), and w, shape (..., d).
    """
    weight_rate, output_rate = map(np.asarray, rates)
    product = output_rate * weight_rate * np.sum(coefficients**2, axis=-1)
    large = (np.hypot(imbalances, 2 * np.sqrt(product)) + np.abs(imbalances)) / 2
    a = np.sqrt(np.where(imbalances >= 0, large, product / large) / weight_rate)
    return a, coefficients / a[..., None]
