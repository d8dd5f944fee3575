"""Any network that is a sum of homogeneous neurons, from the function that one neuron computes."""

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
    """f(x) = Σ_i c_i φ(θ_i, x), for any function φ of one neuron that is homogeneous in the neuron's weights.

    Attributes:
        neurons: Θ, shape (neurons, weights), one row per neuron.
        neuron: φ, a JAX function of the weights (weights,) of one neuron and of a batch of inputs, with the neuron's
            contribution to the outputs of the batch.
        degree: κ, the degree of homogeneity of φ in the weights.
        coefficients: c, shape (neurons,); None for ones.

    Raises:
        InputError: The weights are no finite matrix, or the degree is not a positive whole number.

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
        """The same network with other weights, or with another number of neurons."""
        return eqx.tree_at(lambda network: network.neurons, self, rows)

    def weighted(self, coefficients: Any) -> NeuronSum:
        """Σ_i c_i φ(θ_i, x)."""
        return eqx.tree_at(lambda network: network.coefficients, self, coefficients, is_leaf=lambda leaf: leaf is None)

    def __call__(self, x: Any) -> Any:
        """Outputs for a batch."""
        outputs = jax.vmap(self.neuron, (0, None))(jnp.asarray(self.neurons), x)
        coefficients = jnp.ones(len(self.neurons)) if self.coefficients is None else self.coefficients
        return jnp.tensordot(coefficients, outputs, 1)
