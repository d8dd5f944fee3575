"""A ReLU network with three neurons, tied weights and four parameters for the parity of three bits."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

__all__ = ["TiedParity"]


class TiedParity(eqx.Module):
    """f(x) = w·σ(W x + b) + c, where α, β and γ determine W, b and w.

    The rows of W are α(−1, 1, −1), β(−1, 1, −1) and γ(1, −1, 1), b = (0, β, −γ) and w = (−2α, β, γ).

    Attributes:
        neurons: (α, β, γ).
        bias: c.
    """

    neurons: Any
    bias: Any

    def outputs(self, x: Any) -> Any:
        """The contribution of each neuron to the output, shape (n, 3)."""
        first, second, third = self.neurons
        rows = jnp.outer(self.neurons, jnp.array([-1, 1, -1])) * jnp.array([[1], [1], [-1]])
        hidden = jax.nn.relu(x @ rows.T + jnp.stack([0 * first, second, -third]))
        return hidden * jnp.stack([-2 * first, second, third])

    @property
    def squares(self) -> Any:
        """(α², β², γ², c), the variables of the predicted equations."""
        return jnp.append(self.neurons**2, self.bias)

    def __call__(self, x: Any) -> Any:
        """The output, shape (n, 1)."""
        return self.outputs(x).sum(axis=-1, keepdims=True) + self.bias
