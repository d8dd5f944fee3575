"""Small networks with symmetries, each with its loss, its gradient and the charges of its symmetries, and training."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dynascope.compilation import float64_jit

__all__ = [
    "ATTENTION",
    "BATCH_NORM",
    "BATCH_NORM_EPSILON",
    "CHANNELS",
    "COLUMNS",
    "LINEAR",
    "NEURONS",
    "RELU",
    "Charged",
    "Run",
    "decayed_rates",
    "descend",
]


def waves(wave: Callable, frequency: float, *shape: int) -> np.ndarray:
    """The wave at frequency · 1, 2, 3, …, row by row."""
    return wave(frequency * np.arange(1, np.prod(shape) + 1)).reshape(shape)


class Charged:
    """A network whose weights are one vector.

    Args:
        arrays: Its weights at the start, by name.
        loss_of: Loss of the weights by name and of the shares of the samples, which sum to one.
        samples: Number of samples.
    """

    def __init__(self, arrays: dict[str, np.ndarray], loss_of: Callable, samples: int):
        self.start = np.concatenate([array.ravel() for array in arrays.values()])
        self.shapes = {name: array.shape for name, array in arrays.items()}
        ends = np.cumsum([array.size for array in arrays.values()])
        self.places = {
            name: slice(end - array.size, end) for (name, array), end in zip(arrays.items(), ends, strict=True)
        }
        self.shares = np.full(samples, 1 / samples)
        self._loss = lambda weights, shares: loss_of(self.split(weights), shares)

    def split(self, weights):
        return {name: weights[place].reshape(self.shapes[name]) for name, place in self.places.items()}

    @functools.cached_property
    def loss(self):
        compiled = float64_jit(self._loss)
        return lambda weights: float(compiled(weights, self.shares))

    @functools.cached_property
    def gradient(self):
        compiled = float64_jit(jax.grad(self._loss))
        return lambda weights, shares=None: compiled(weights, self.shares if shares is None else shares)

    def marked(self, **signs: dict) -> np.ndarray:
        """The diagonal of a generator: a sign for some entries of some weights, zero elsewhere."""
        found = {name: np.zeros(shape) for name, shape in self.shapes.items()}
        for name, (where, sign) in signs.items():
            found[name][where] = sign
        return np.concatenate([array.ravel() for array in found.values()])


def _cross_entropy(logits, shares):
    labels = jnp.array([0, 1, 0, 1, 1])
    return -shares @ jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)[:, 0]


def _relu_loss(weights, shares, *, normalize=False, epsilon=0.0):
    hidden = waves(np.sin, 1.1, 5, 3) @ weights["first"].T + weights["bias"]
    if normalize:
        centred = hidden - shares @ hidden
        hidden = centred / jnp.sqrt(shares @ centred**2 + epsilon)
    return _cross_entropy(jax.nn.relu(hidden) @ weights["second"].T + weights["output_bias"], shares)


_TWO_LAYERS = {
    "first": waves(np.sin, 0.7, 4, 3),
    "bias": waves(np.sin, 0.3, 4),
    "second": waves(np.cos, 0.9, 2, 4),
    "output_bias": waves(np.cos, 0.2, 2),
}
RELU = Charged(_TWO_LAYERS, _relu_loss, 5)
BATCH_NORM = Charged(_TWO_LAYERS, functools.partial(_relu_loss, normalize=True), 5)
BATCH_NORM_EPSILON = Charged(_TWO_LAYERS, functools.partial(_relu_loss, normalize=True, epsilon=1e-3), 5)

# The diagonals of the generators: imbalance of each ReLU neuron, columns before the softmax, weights before the norm.
NEURONS = [RELU.marked(first=(i, -1), bias=(i, -1), second=((slice(None), i), 1)) for i in range(4)]
COLUMNS = [RELU.marked(second=((slice(None), i), 1)) for i in range(4)] + [RELU.marked(output_bias=(..., 1))]
CHANNELS = [RELU.marked(first=(i, 1), bias=(i, 1)) for i in range(4)]


def _linear_loss(weights, shares):
    outputs = waves(np.sin, 0.9, 6, 3) @ weights["first"].T @ weights["second"].T
    return shares @ jnp.sum((outputs - waves(np.cos, 0.4, 6, 2)) ** 2, axis=1) / 2


LINEAR = Charged({"first": waves(np.sin, 0.5, 2, 3), "second": waves(np.cos, 1.3, 2, 2)}, _linear_loss, 6)


def _attention_loss(weights, shares):
    inputs, target = waves(np.sin, 0.8, 4, 3), waves(np.cos, 0.5, 4, 3)
    scores = inputs @ weights["query"].T @ weights["key"] @ inputs.T / np.sqrt(2)
    attended = jax.nn.softmax(jnp.where(np.tri(4, dtype=bool), scores, -jnp.inf), axis=1)
    outputs = attended @ inputs @ weights["value"].T @ weights["output"].T
    return shares @ jnp.sum((outputs - target) ** 2, axis=1) / 2


_HEAD = 0.8 * waves(np.sin, 0.37, 24)
ATTENTION = Charged(
    dict(
        zip(
            ("query", "key", "value", "output"),
            (*_HEAD[:18].reshape(3, 2, 3), _HEAD[18:].reshape(3, 2)),
            strict=True,
        )
    ),
    _attention_loss,
    4,
)


class Run(NamedTuple):
    """What was recorded of a training, steps first.

    Attributes:
        weights: Before the first step and after each.
        gradients: Of the loss alone, at every step.
        buffers: After every step.
        updates: What the learning rate multiplies, at every step.
    """

    weights: np.ndarray
    gradients: np.ndarray
    buffers: np.ndarray
    updates: np.ndarray

    def charge(self, diagonal: np.ndarray) -> np.ndarray:
        return self.weights**2 @ diagonal

    def displacements(self, diagonal: np.ndarray) -> np.ndarray:
        return np.diff(self.weights, axis=0) ** 2 @ diagonal


def decayed_rates(count: int) -> dict[str, np.ndarray]:
    """A schedule in which everything changes."""
    k = np.arange(count)
    return {
        "learning_rate": 0.1 * (1 + 0.5 * np.cos(0.3 * k)),
        "weight_decay": 0.02 * (1 + np.sin(0.2 * k)),
        "momentum": 0.9 - 0.01 * k,
    }


def descend(
    gradient, start, count, *, learning_rate, weight_decay=0.0, momentum=0.0, dampening=0.0, optimizer="heavy_ball"
):
    """Train as PyTorch's SGD does, with hyperparameters of every step; the last axis of rates and decays is of weights.

    The gradient is of the weights and of the number of the step.
    """
    rates, decays, momenta, lost = (
        [each] * count if np.ndim(each) == 0 else each for each in (learning_rate, weight_decay, momentum, dampening)
    )
    weights, buffer, path = np.array(start, float), np.zeros_like(start, dtype=float), []
    for k in range(count):
        slope = np.asarray(gradient(weights, k))
        pull = decays[k] * weights
        push = slope if optimizer == "decoupled" else slope + pull
        kept = 1 - lost[k] if k and momenta[k] > 0 else 1.0
        buffer = momenta[k] * buffer + kept * push
        update = push + momenta[k] * buffer if optimizer == "nesterov" else buffer
        path.append((weights, slope, buffer, update))
        shrunk = weights - rates[k] * pull if optimizer == "decoupled" else weights
        weights = shrunk - rates[k] * update
    before, gradients, buffers, updates = map(np.stack, zip(*path, strict=True))
    return Run(np.concatenate([before, weights[None]]), gradients, buffers, updates)
