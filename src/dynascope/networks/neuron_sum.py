"""Sums of homogeneous neurons, defined by the function of a single neuron."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.validation import checked, require_array
from dynascope.validation.bounded import PositiveInt

__all__ = ["NeuronSum"]


class NeuronSum(eqx.Module):
    """A network f(x) = Σ_i c_i φ(θ_i, x) with a user-defined neuron φ that is homogeneous in its weights.

    Attributes:
        neurons: Θ, shape (neurons, weights), one row per neuron.
        neuron: φ, a JAX function of the weights of one neuron, shape (weights,), and a batch of inputs; φ returns the
            contribution of the neuron to the outputs.
        degree: Degree of homogeneity κ of φ in the weights.
        coefficients: c, shape (neurons,); None if all coefficients are one.

    Raises:
        InputError: If the weights are not a finite matrix, or if the degree is not a positive integer.

    Example:
        >>> def cubic(weights, x):
        ...     return weights[-1:] * (x @ weights[:-1, None]) ** 2
        >>> network = NeuronSum(np.ones((5, 3)), cubic, degree=3)
        >>> network(np.ones((4, 2))).shape, float(network(np.ones((4, 2)))[0, 0])
        ((4, 1), 20.0)
    """

    neurons: Float[Array | np.ndarray, "neurons weights"]
    neuron: Callable[[Any, Any], Any] = eqx.field(static=True)
    degree: int = eqx.field(static=True)
    coefficients: Any

    @checked
    def __init__(self, neurons: Any, neuron: Callable[[Any, Any], Any], *, degree: PositiveInt):
        self.neurons = require_array("neurons", neurons, (None, None))
        self.neuron = neuron
        self.degree = degree
        self.coefficients = None

    def with_neurons(self, rows: Any) -> NeuronSum:
        """Replace the weights; the number of neurons can change."""
        return eqx.tree_at(lambda network: network.neurons, self, rows)

    def weighted(self, coefficients: Any) -> NeuronSum:
        """Set the coefficients c of Σ_i c_i φ(θ_i, x)."""
        return eqx.tree_at(lambda network: network.coefficients, self, coefficients, is_leaf=lambda leaf: leaf is None)

    def __call__(self, x: Any) -> Any:
        """Compute the outputs for a batch."""
        outputs = jax.vmap(self.neuron, (0, None))(jnp.asarray(self.neurons), x)
        coefficients = jnp.ones(len(self.neurons)) if self.coefficients is None else self.coefficients
        return jnp.tensordot(coefficients, outputs, 1)
