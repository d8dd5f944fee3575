"""The learning rates of the two layers of a network."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from dynascope.validation.bounded import PositiveArray

__all__ = ["LayerRates", "clock_of", "positive", "positive_rates", "rate_shapes"]


class LayerRates(NamedTuple):
    """Learning rates of the two layers of a network, for gradient flow W₁' = −η₁ ∂L/∂W₁, W₂' = −η₂ ∂L/∂W₂.

    Attributes:
        first: Learning rate η₁ > 0 of the layer next to the inputs; a number, or one value per member of an ensemble.
        second: Learning rate η₂ > 0 of the layer next to the outputs; a number, or one value per member.

    References:
        Kunin, Raventós, Dominé, Chen, Klindt, Saxe, Ganguli, arXiv:2406.06158, section 3.

    Example:
        >>> from dynascope.theory.balanced import layer_balance
        >>> balance = layer_balance([[1.0]], [[2.0]], rates=LayerRates(first=0.5, second=2.0))
        >>> print(balance.value)
        0.0
    """

    first: PositiveArray = 1.0
    second: PositiveArray = 1.0


def rate_shapes(rates: LayerRates) -> dict[str, tuple[int, ...]]:
    """The shapes of validated rates, keyed by the names that error messages use."""
    return {f"rates.{name}": getattr(each, "shape", ()) for name, each in zip(rates._fields, rates, strict=True)}


def clock_of(rates: LayerRates) -> Float[Array, ...]:
    """Return the geometric mean κ = √(η₁ η₂) of the rates, without overflow; for use inside a compiled function."""
    return jnp.sqrt(rates.first) * jnp.sqrt(rates.second)


def positive_rates(rates: LayerRates) -> Bool[Array, ...]:
    """Whether both rates are finite and positive; for use inside a compiled function."""
    return positive(rates.first) & positive(rates.second)


def positive(values: Any) -> Array:
    """Whether the values are finite and positive."""
    return jnp.isfinite(values) & (values > 0)
