"""The change f − f₀ of a network function, and the first two orders of its expansion in small targets."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

__all__ = ["LazyOrders", "MovedMLP"]


class MovedMLP(eqx.Module):
    """The change f − f₀ of a network function, or its linearisation in the weights of all layers or of the last layer.

    Attributes:
        network: The trained network f.
        start: The initial network f₀.
        kind: "all layers", "linearised" or "last layer only".
    """

    network: Any
    start: Any
    kind: str = eqx.field(static=True)

    def __call__(self, x: Any) -> Any:
        """Outputs for a batch."""
        start = jax.lax.stop_gradient(self.start)
        if self.kind == "all layers":
            return self.network(x) - start(x)
        if self.kind == "linearised":
            moved = jax.tree.map(lambda now, before: now - before, self.network, start)
            return jax.jvp(lambda network: network(x), (start,), (moved,))[1]
        weights = self.network.classifier - start.classifier
        return start.features(x) @ weights + self.network.classifier_bias - start.classifier_bias

    def features(self, x: Any) -> Any:
        """Inputs of the last layer, which stay fixed if the linearisation is trained."""
        return (self.network if self.kind == "all layers" else self.start).features(x)


class LazyOrders(eqx.Module):
    """F₁ and F₂ as functions of θ₁ and θ₂ at fixed θ₀, and the first order of the features.

    Attributes:
        start: The network with weights θ₀.
        one: A network with weights θ₁.
        two: A network with weights θ₂.
    """

    start: Any
    one: Any
    two: Any

    def __call__(self, x: Any) -> Any:
        """Both orders of the outputs, shape (n, 2, c)."""
        start = jax.lax.stop_gradient(self.start)
        first, curved = jax.jvp(lambda at: self._along(self.one, at, x), (start,), (self.one,))
        return jnp.stack([first, self._along(self.two, start, x) + curved / 2], axis=1)

    def change(self, x: Any) -> Any:
        """First order h₁ of the features."""
        return jax.jvp(lambda each: each.features(x), (self.start,), (self.one,))[1]

    def _along(self, direction: Any, at: Any, x: Any) -> Any:
        return jax.jvp(lambda each: each(x), (at,), (direction,))[1]
