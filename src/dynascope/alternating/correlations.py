"""Correlations between the functions of neurons, to find neurons that compute the same function."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.compilation import filter_jit
from dynascope.protocols import Average, SumOfNeurons

__all__ = ["correlations"]


@filter_jit
def correlations(
    network: SumOfNeurons, average: Average, rows: Float[Array | np.ndarray, "neurons weights"]
) -> Float[Array, "neurons neurons"]:
    """Absolute correlations of the outputs of all pairs of neurons.

        |E⟨f_i, f_j⟩| / √(E‖f_i‖² E‖f_j‖²)

    E⟨f_i, f_j⟩ is computed as the curvature of the squared loss with respect to the coefficients of the neurons.

    Args:
        network: Network that defines the function of a neuron.
        average: Samples or expectation that defines the loss.
        rows: Weights Θ, one neuron per row, of any norm.

    Example:
        >>> from dynascope.flows.objective import Samples
        >>> from dynascope.networks import TwoLayer
        >>> average = Samples(np.eye(2), np.zeros((2, 1)))
        >>> rows = jnp.array([[1.0, 0.0, 1.0], [1.0, 1.0, -2.0]])
        >>> correlations(TwoLayer(2, 1, 1), average, rows).round(3).tolist()
        [[1.0, 0.7...], [0.7..., 1.0]]
    """
    lengths = jnp.maximum(jnp.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    neurons = network.with_neurons(rows / lengths)
    products = jax.hessian(lambda coefficients: average.loss(neurons.weighted(coefficients)))(jnp.zeros(len(rows)))
    sizes = jnp.sqrt(jnp.maximum(jnp.diag(products), 1e-300))
    return jnp.abs(products) / (sizes[:, None] * sizes)
