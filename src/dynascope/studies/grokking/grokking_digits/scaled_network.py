"""An MLP with scaled weights, inputs, outputs and targets, and Adam with weight decay for it."""

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
    "STATISTICS",
    "ScaledError",
    "accuracy",
    "adam_with_decay",
    "decay_alone",
    "features_and_outputs",
    "unravelled",
]

_FORGETTING, _SQUARES_FORGETTING, _EPSILON = 0.9, 0.999, 1e-8  # the usual constants of Adam


class ScaledError(eqx.Module):
    """The error b·f(a·x) − T·y of an MLP on x and y side by side; as arrays, all dials share a program.

    Attributes:
        network: f.
        scales: The scale c of each array of the network, as a tree of the same structure.
        target_scale: T.
        input_scale: a.
        output_scale: b.
        weight_decay: λ.
        loss_factor: Factor on loss and weight decay that is represented by dividing ε by it.
    """

    network: Any
    scales: Any
    target_scale: Any
    input_scale: Any
    output_scale: Any
    weight_decay: Any
    loss_factor: Any

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
    """Adam on loss and weight decay, scaled for each array of the network; the dials stay constant."""

    def initial(params: Any) -> Any:
        nothing = jax.tree.map(jnp.zeros_like, params.network)
        return jnp.zeros((), jnp.int32), nothing, nothing

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        def force(slope: Any, weight: Any, scale: Any) -> Any:
            return slope + params.weight_decay / scale**2 * weight

        def change(mean: Any, square: Any, scale: Any) -> Any:
            spread = jnp.sqrt(square / (1 - _SQUARES_FORGETTING**count))
            # The forces are not scaled, so that Adam itself compensates for their size.
            epsilon = _EPSILON / (scale * params.loss_factor)
            return -learning_rate * scale * (mean / (1 - _FORGETTING**count)) / (spread + epsilon)

        count = state[0] + 1
        forces = jax.tree.map(force, updates.network, params.network, params.scales)
        mean = jax.tree.map(lambda old, new: _FORGETTING * old + (1 - _FORGETTING) * new, state[1], forces)
        square = jax.tree.map(
            lambda old, new: _SQUARES_FORGETTING * old + (1 - _SQUARES_FORGETTING) * new**2, state[2], forces
        )
        changes = jax.tree.map(change, mean, square, params.scales)
        whole = eqx.tree_at(lambda each: each.network, jax.tree.map(jnp.zeros_like, updates), changes)
        return whole, (count, mean, square)

    return optax.GradientTransformation(initial, update)


@jit
def decay_alone(start: Any, weight_decay: Any, learning_rate: Any, counts: Any) -> Any:
    """Root mean square (steps, seeds) of weights (seeds, pixels, neurons) under Adam with the force λθ alone."""

    def step(carry: Any, count: Any) -> Any:
        weight, mean, square = carry
        force = weight_decay * weight
        mean = _FORGETTING * mean + (1 - _FORGETTING) * force
        square = _SQUARES_FORGETTING * square + (1 - _SQUARES_FORGETTING) * force**2
        spread = jnp.sqrt(square / (1 - _SQUARES_FORGETTING**count))
        weight -= learning_rate * mean / (1 - _FORGETTING**count) / (spread + _EPSILON)
        return (weight, mean, square), jnp.sqrt(jnp.mean(weight**2, axis=(1, 2)))

    return jax.lax.scan(step, (start, jnp.zeros_like(start), jnp.zeros_like(start)), counts)[1]


def _weights(network: Any) -> Any:
    return ravel_pytree(network.network)[0]


def unravelled(network: Any, rows: Any) -> Any:
    """The networks with these weights, with the records as the first dimension."""
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
    """The share of images that each network classifies correctly."""
    return np.asarray(_right(networks, inputs, targets), float)


# Metrics of the features are computed afterwards, in double precision, and only for some networks.
STATISTICS = {"weights": (_weights, ("weight",))}
