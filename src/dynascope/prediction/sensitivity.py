"""Describe the feature a neuron learned: the inputs its output depends on and the outputs it drives."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dynascope.compilation import filter_jit
from dynascope.networks.neuron_sum import NeuronSum

__all__ = ["sensitivity"]

_MOST_SAMPLES = 256


def sensitivity(
    network: NeuronSum, weights: Float[np.ndarray, " w"], inputs: Float[np.ndarray, "n d"]
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " c"]]:
    """Return the sensitivity of a neuron to each input, and its effect on each output.

    The sensitivity to input i is σ_i √(E ‖∂φ/∂x_i‖²). The standard deviation σ_i of the input makes the sensitivity
    independent of units. The effect on an output is the standard deviation of the neuron's contribution.

    Args:
        network: The network that contains the neuron.
        weights: The weights of the neuron.
        inputs: The data; large data are subsampled at regular intervals.

    Returns:
        Both vectors at unit norm; zeros if the contribution is constant over the samples or not finite.

    Example:
        >>> network = NeuronSum(np.ones((1, 2)), lambda w, x: w[0] * jnp.sin(w[1] * x[:, :1]), degree=2)
        >>> parts, moved = sensitivity(network, np.ones(2), np.random.default_rng(0).normal(size=(50, 3)))
        >>> parts.tolist(), moved.tolist()
        ([1.0, 0.0, 0.0], [1.0])
    """
    taken = inputs[:: -(-len(inputs) // _MOST_SAMPLES)]
    alone = network.with_neurons(jnp.asarray(weights)[None]).weighted(None)
    slopes, answers = map(np.asarray, _slopes_and_answers(alone, jnp.asarray(taken)))
    with np.errstate(invalid="ignore", over="ignore"):  # non-finite results become zeros
        parts = inputs.std(axis=0) * np.sqrt(np.mean(np.sum(slopes**2, axis=1), axis=0))
        return _unit(parts), _unit(answers.std(axis=0))


@filter_jit
def _slopes_and_answers(alone: NeuronSum, inputs: Any) -> tuple[Any, Any]:
    return jax.vmap(jax.jacfwd(lambda x: alone(x[None])[0]))(inputs), alone(inputs)


def _unit(vector: np.ndarray) -> np.ndarray:
    size = np.linalg.norm(vector)
    return vector / size if np.isfinite(size) and size > 0 else np.zeros_like(vector)
