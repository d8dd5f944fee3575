"""A neuron and what it is to learn, checked where they are known."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float

from dynascope.arguments import in_one_shape, real_value, require_broadcast, require_known
from dynascope.results.named_tuples import short_repr
from dynascope.theory.balanced.rates import LayerRates

__all__ = ["RATE_UNITS", "STANDARDS", "UNITS", "Neuron", "TargetedNeuron"]

# The units of a neuron before training, of which those that come first are brought to order one.
RATE_UNITS: dict[str, Any] = {"output_rate": "w^-2 t^-1", "weight_rate": "a^-2 t^-1"}
UNITS: dict[str, Any] = RATE_UNITS | {"initial_output": "a", "initial_weights": "w", "target": "a w"}
STANDARDS = ("output_rate", "weight_rate", "target|initial_output|initial_weights")


class Neuron(NamedTuple):
    """A neuron f(x) = a wᵀx, or a batch; still in NumPy where it is known.

    Attributes:
        output: a, shape (...); the leading dimensions of all broadcast.
        weights: w, shape (..., d).
        rates: η_w of the first layer and η_a of the second.
    """

    output: Float[Array, ...]
    weights: Float[Array, "... d"]
    rates: LayerRates

    __repr__ = short_repr

    @classmethod
    def checked(cls, output_rate: Any, weight_rate: Any, *, inputs: int | None = None, **state: Any) -> Neuron:
        """The output weight and the weights, by the names of the arguments, for so many inputs if they are given."""
        (output, a), (weights, w) = state.items()
        a, w = real_value(output, a), real_value(weights, w, last=(inputs,))
        rates = LayerRates.checked(weight_rate=weight_rate, output_rate=output_rate)
        require_broadcast(
            **{weights: w.shape[:-1], output: np.shape(a)},
            output_rate=np.shape(rates.second),
            weight_rate=np.shape(rates.first),
        )
        a, *known = in_one_shape(a, *rates)
        return cls(a, w, LayerRates._make(known))

    @property
    def batch(self) -> tuple[int, ...]:
        """The common shape of the leading dimensions."""
        return np.broadcast_shapes(np.shape(self.output), self.weights.shape[:-1], *map(np.shape, self.rates))

    @property
    def valid(self) -> Bool[Array, ...]:
        """Whether all is finite and the rates positive."""
        return jnp.isfinite(self.output) & jnp.all(jnp.isfinite(self.weights), axis=-1) & self.rates.valid


class TargetedNeuron(NamedTuple):
    """A neuron before training, and its target.

    Attributes:
        neuron: a(0), w(0) and the rates.
        target: β*, shape (..., d); its leading dimensions broadcast with those of the neuron.
    """

    neuron: Neuron
    target: Float[Array, "... d"]

    @classmethod
    def checked(
        cls, initial_output: Any, initial_weights: Any, target: Any, output_rate: Any, weight_rate: Any
    ) -> TargetedNeuron:
        """The start, by the names of the arguments."""
        state = {"initial_output": initial_output, "initial_weights": initial_weights}
        neuron = Neuron.checked(output_rate, weight_rate, **state)
        beta = real_value("target", target, last=neuron.weights.shape[-1:])
        require_broadcast(initial_output=neuron.batch, target=beta.shape[:-1])
        return cls(neuron, beta)

    @classmethod
    def known(
        cls, initial_output: Any, initial_weights: Any, target: Any, output_rate: Any, weight_rate: Any
    ) -> TargetedNeuron:
        """The start, by the names of the arguments, for what has to read its values."""
        state = {"initial_output": initial_output, "initial_weights": initial_weights, "target": target}
        require_known(**state, output_rate=output_rate, weight_rate=weight_rate)
        return cls.checked(**state, output_rate=output_rate, weight_rate=weight_rate)

    @property
    def valid(self) -> Bool[Array, ...]:
        """Whether all is finite and the rates positive."""
        return self.neuron.valid & jnp.all(jnp.isfinite(self.target), axis=-1)


def weights_of(
    coefficients: np.ndarray, imbalances: np.ndarray, *, output_rate: float = 1.0, weight_rate: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """The weights a > 0, shape (...), and w, (..., d), of maps β = a w, (..., d), with these imbalances δ, (...)."""
    product = output_rate * weight_rate * np.sum(coefficients**2, axis=-1)
    large = (np.hypot(imbalances, 2 * np.sqrt(product)) + np.abs(imbalances)) / 2
    a = np.sqrt(np.where(imbalances >= 0, large, product / large) / weight_rate)
    return a, coefficients / a[..., None]
