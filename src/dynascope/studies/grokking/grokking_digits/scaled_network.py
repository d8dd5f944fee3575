"""An MLP with scaled weights, inputs, outputs and targets, and its training by Adam with weight decay."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from dynascope.compilation import filter_jit, jit

__all__ = [
    "EPSILON",
    "STATISTICS",
    "ScaledError",
    "accuracy",
    "adam_with_decay",
    "decay_alone",
    "features_and_outputs",
    "unravelled",
]

EPSILON = 1e-8  # default hyperparameters of Adam
_BETA1, _BETA2 = 0.9, 0.999


class ScaledError(eqx.Module):
    """The error b·f(a·x) − T·y of an MLP on concatenated x and y, with all factors as arrays to share one program.

    Attributes:
        network: f.
        rates: The learning rate of each array of the network relative to η, as a tree of the same structure.
        decays: λ of each array.
        epsilons: ε of Adam of each array.
        target_scale: T.
        input_scale: a.
        output_scale: b.
    """

    network: Any
    rates: Any
    decays: Any
    epsilons: Any
    target_scale: Any
    input_scale: Any
    output_scale: Any

    def __call__(self, pairs: Any) -> Any:
        """The error of each sample."""
        width = self.network.weights[0].shape[0]
        return self.outputs(pairs[:, :width]) - self.target_scale * pairs[:, width:]

    def outputs(self, x: Any) -> Any:
        """b·f(a·x)."""
        return self.output_scale * self.network(self.input_scale * x)

    def features(self, x: Any) -> Any:
        """Inputs of the last layer of f."""
        return self.network.features(self.input_scale * x)


def adam_with_decay(learning_rate: Any) -> optax.GradientTransformation:
    """Adam on the loss with weight decay, with settings for each array of the network; the settings are not trained."""

    def initial(params: Any) -> Any:
        nothing = jax.tree.map(jnp.zeros_like, params.network)
        return jnp.zeros((), jnp.int32), nothing, nothing

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        def force(slope: Any, weight: Any, decay: Any) -> Any:
            return slope + decay * weight

        def change(mean: Any, square: Any, rate: Any, epsilon: Any) -> Any:
            spread = jnp.sqrt(square / (1 - _BETA2**count))
            return -learning_rate * rate * (mean / (1 - _BETA1**count)) / (spread + epsilon)

        count = state[0] + 1
        forces = jax.tree.map(force, updates.network, params.network, params.decays)
        mean = jax.tree.map(lambda old, new: _BETA1 * old + (1 - _BETA1) * new, state[1], forces)
        square = jax.tree.map(lambda old, new: _BETA2 * old + (1 - _BETA2) * new**2, state[2], forces)
        changes = jax.tree.map(change, mean, square, params.rates, params.epsilons)
        whole = eqx.tree_at(lambda each: each.network, jax.tree.map(jnp.zeros_like, updates), changes)
        return whole, (count, mean, square)

    return optax.GradientTransformation(initial, update)


@jit
def decay_alone(start: Any, weight_decay: Any, learning_rate: Any, counts: Any) -> Any:
    """Root mean square (steps, seeds) of weights (seeds, pixels, neurons) under Adam with the gradient λθ alone."""

    def step(carry: Any, count: Any) -> Any:
        weight, mean, square = carry
        force = weight_decay * weight
        mean = _BETA1 * mean + (1 - _BETA1) * force
        square = _BETA2 * square + (1 - _BETA2) * force**2
        spread = jnp.sqrt(square / (1 - _BETA2**count))
        weight -= learning_rate * mean / (1 - _BETA1**count) / (spread + EPSILON)
        return (weight, mean, square), jnp.sqrt(jnp.mean(weight**2, axis=(1, 2)))

    return jax.lax.scan(step, (start, jnp.zeros_like(start), jnp.zeros_like(start)), counts)[1]


def _weights(network: Any) -> Any:
    return ravel_pytree(network.network)[0]


def unravelled(network: Any, rows: Any) -> Any:
    """The network with the weights of each record, with the records along the first dimension."""
    leaves, structure = jax.tree.flatten(network.network)
    parts = np.split(rows, np.cumsum([leaf.size for leaf in leaves])[:-1], axis=1)
    shaped = [part.reshape(-1, *leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
    same = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (len(rows), *leaf.shape)), network)
    return eqx.tree_at(lambda each: each.network, same, jax.tree.unflatten(structure, shaped))


@filter_jit
def _right(networks: Any, inputs: Any, targets: Any) -> Any:
    labels = targets.argmax(axis=1)
    return jax.lax.map(lambda each: jnp.mean(each.outputs(inputs).argmax(axis=1) == labels), networks)


@filter_jit
def features_and_outputs(network: ScaledError, inputs: Any) -> tuple[Any, Any]:
    """Features and outputs."""
    return network.features(inputs), network.outputs(inputs)


def accuracy(networks: Any, inputs: Any, targets: Any) -> Any:
    """The fraction of images that each network classifies correctly."""
    return np.asarray(_right(networks, inputs, targets), float)


# Feature metrics are computed after training, in double precision and only for some networks.
STATISTICS = {"weights": (_weights, ("weight",))}
