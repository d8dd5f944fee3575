"""A JAX network as functions of the vector of its weights."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Bool, Float

from dynascope.compilation import filter_jit
from dynascope.networks import MLP, BiasedTwoLayer, DeepLinear, TwoLayer
from dynascope.probes.kernel import neural_tangent_kernel
from dynascope.training.losses import Loss

__all__ = ["JaxNetwork"]


class JaxNetwork:
    """A network of `networks`, or an equinox module that maps a batch in rows; see `TrainableNetwork`.

    Args:
        network: The network with its initial weights.
        inputs: All inputs, shape (n, ...).
        loss: The loss.
        few: Indices of the inputs on which the NTK is computed.
    """

    def __init__(self, network: Any, inputs: np.ndarray, loss: Loss, few: np.ndarray):
        arrays, frame = eqx.partition(network, eqx.is_inexact_array)
        with jax.enable_x64(True):
            start, unravel = ravel_pytree(jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), arrays))
            self.start = np.asarray(start)
            numbers = _layers(network, arrays)
            self.layers = None if numbers is None else np.asarray(ravel_pytree(numbers)[0]).astype(int)
        self._unravel, self._frame = unravel, frame
        self._inputs, self._few = inputs, inputs[few]

        def value(weights: Any, inputs: Any, targets: Any) -> Any:
            return jnp.mean(loss.each(eqx.combine(unravel(weights), frame)(inputs), targets))

        self._gradient = jax.jit(jax.value_and_grad(value))
        self._apply = lambda arrays, x: eqx.combine(arrays, frame)(x)

    def network(self, weights: Float[np.ndarray, " P"]) -> Any:
        """Return the network with the given weights."""
        return eqx.combine(self._unravel(jnp.asarray(weights)), self._frame)

    def outputs(self, weights: Float[np.ndarray, " P"]) -> Float[np.ndarray, "n c"]:
        """Compute the outputs on all samples."""
        with jax.enable_x64(True):
            return np.asarray(_outputs(self.network(weights), self._inputs), np.float64)

    def gradient(self, weights: Float[np.ndarray, " P"], targets: Any) -> tuple[float, Float[np.ndarray, " P"]]:
        """Compute the loss on all samples and its gradient."""
        with jax.enable_x64(True):
            loss, gradient = self._gradient(weights, self._inputs, targets)
        return float(loss), np.asarray(gradient)

    def kernel(self, weights: Float[np.ndarray, " P"], rates: Float[np.ndarray, " P"] | None) -> Any:
        """Compute the NTK on the subset of the samples."""
        with jax.enable_x64(True):
            speeds = None if rates is None else self._unravel(jnp.asarray(rates))
            found = neural_tangent_kernel(self._apply, self._unravel(jnp.asarray(weights)), self._few, rates=speeds)
            return np.asarray(found.values)

    def patterns(self, weights: Float[np.ndarray, " P"]) -> Bool[np.ndarray, "m neurons"] | None:
        """Compute which hidden neurons are active on the subset of the samples; None for linear or other networks."""
        with jax.enable_x64(True):
            network, x = jax.tree.map(np.asarray, self.network(weights)), self._few
        if isinstance(network, MLP) and network.activation != "linear":
            return np.concatenate([np.asarray(z) for z in network.preactivations(x)[:-1]], axis=1) > 0
        if isinstance(network, BiasedTwoLayer):
            if network.has_hidden_biases:
                x = np.column_stack([x, np.ones(len(x))])
            network = network.inner
        if isinstance(network, TwoLayer) and not network.activation.linear:
            return x @ np.asarray(network.first) > 0
        return None


def _layers(network: Any, arrays: Any) -> Any:
    """Return the number of the layer of each weight, as a tree of arrays, if the layers are known."""
    leaves, structure = jax.tree.flatten(arrays)
    if isinstance(network, DeepLinear | TwoLayer):
        numbers = list(range(len(leaves)))
    elif isinstance(network, MLP):
        numbers = [*range(len(network.weights)), *range(len(network.biases))]
    else:
        return None
    filled = [np.full(np.shape(leaf), float(number)) for leaf, number in zip(leaves, numbers, strict=True)]
    return jax.tree.unflatten(structure, filled)


@filter_jit
def _outputs(network: Any, inputs: Any) -> Any:
    return network(inputs)
