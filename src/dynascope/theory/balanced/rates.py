"""The learning rates of the two layers of a linear network."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from dynascope.arguments import real_value
from dynascope.results.named_tuples import short_repr

__all__ = ["LayerRates", "positive"]


class LayerRates(NamedTuple):
    """η₁ and η₂, which broadcast with the leading dimensions of the network; still in NumPy where they are known.

    Attributes:
        first: η₁ > 0, of the layer next to the inputs.
        second: η₂ > 0, of the layer next to the outputs.
    """

    first: Float[Array, ...]
    second: Float[Array, ...]

    __repr__ = short_repr

    @classmethod
    def checked(cls, **rates: Any) -> LayerRates:
        """The rates of the first and of the second layer, by the names of the arguments."""
        first, second = (real_value(name, rate, above=0) for name, rate in rates.items())
        return cls(first, second)

    @property
    def clock(self) -> Float[Array, ...]:
        """κ = √(η₁ η₂), without leaving the floating-point range on the way."""
        return jnp.sqrt(self.first) * jnp.sqrt(self.second)

    @property
    def valid(self) -> Bool[Array, ...]:
        """Whether both are finite and positive."""
        return positive(self.first) & positive(self.second)


def positive(values: Array) -> Array:
    """Whether the values are finite and positive."""
    return jnp.isfinite(values) & (values > 0)
