"""Utility gradients of quadratic two-layer networks from second moments of the samples."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.flows.exact.neuron_curvature import moments_of
from dynascope.flows.objective import Samples
from dynascope.networks.two_layer import TwoLayer
from dynascope.protocols import Average, SumOfNeurons

__all__ = ["error_moments", "quadratic_slopes", "slopes_by_moments"]

_PRODUCTS = 3.0  # number of products with all samples in a gradient of the utility


def slopes_by_moments(network: SumOfNeurons, average: Average) -> float:
    """Return the cost of a utility gradient from moments, relative to one from samples; 1 if moments are not faster.

    Args:
        network: The network.
        average: Samples or expectation that defines the loss.

    Example:
        >>> average = Samples(np.ones((60, 3)), np.ones((60, 2)))
        >>> [slopes_by_moments(TwoLayer(3, 5, 2, activation=each), average) for each in ("quadratic", "relu")]
        [0.033..., 1.0]
    """
    if not (isinstance(network, TwoLayer) and isinstance(average, Samples)):
        return 1.0
    activation = network.activation
    if activation.degree != 2 or activation.positive != activation.negative:
        return 1.0
    samples, outputs = average.targets.shape
    return min(outputs * network.first.shape[0] / (_PRODUCTS * samples), 1.0)


def error_moments(
    inputs: Float[Array | np.ndarray, "n d"], error: Float[Array | np.ndarray, "n c"]
) -> Float[Array, "c d d"]:
    """Compute M_k = E[r_k x xᵀ] for each output k.

    Example:
        >>> import jax
        >>> jax.jit(error_moments)(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[2.0], [4.0]])).tolist()
        [[[1.0, 2.0], [2.0, 6.0]]]
    """
    return moments_of(jnp.asarray(inputs), jnp.asarray(error) / len(error))


def quadratic_slopes(
    network: Any, moments: Float[Array, "c d d"], rows: Float[Array, "neurons weights"]
) -> Float[Array, "neurons weights"]:
    """Compute ∇U for each neuron (w, a), with U(w, a) = Σ_k a_k wᵀ M_k w times the coefficient p of σ(z) = p z².

    Example:
        >>> import jax
        >>> network = TwoLayer(1, 1, 1, activation="quadratic")
        >>> slopes = jax.jit(lambda moments, rows: quadratic_slopes(network, moments, rows))
        >>> slopes(np.array([[[5.0]]]), np.array([[2.0, 3.0]])).tolist()  # of 5 a w²
        [[60.0, 20.0]]
    """
    inside = moments.shape[1]
    first, second = rows[:, :inside], rows[:, inside:]
    # A single matrix product for all outputs.
    pulled = (first @ moments.transpose(1, 0, 2).reshape(inside, -1)).reshape(len(rows), -1, inside)
    within = 2 * jnp.einsum("ik,ikd->id", second, pulled)
    outside = jnp.einsum("ikd,id->ik", pulled, first)
    return network.activation.positive * jnp.concatenate([within, outside], axis=1)
