"""Networks whose synaptic saliency is conserved: dense, convolutional and residual."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dynascope.networks.convolution import convolved, mean_pooled

__all__ = ["CLASSES", "ZOO", "Architecture", "Weights", "draw_weights"]

Weights = dict[str, Any]
CLASSES = 3
_SIDE, _CHANNELS, _WIDTH = 8, 4, 10
_EPSILON = 1e-5


class Architecture(NamedTuple):
    """A network as a function of named weights.

    Attributes:
        apply: (weights, inputs) → outputs.
        shapes: Shape of each array of weights. A name that starts with "b" is a bias, one that starts with "g" a gain,
            and "skip" the multiplier of a skip connection, which is one.
        sample: Shape of one sample.
        cuts: For each cut, the names of its weights, including skip connections.
        biases: For each cut, the names of the biases at or after this cut and before the next one.
    """

    apply: Callable[[Mapping[str, Any], Any], Any]
    shapes: dict[str, tuple[int, ...]]
    sample: tuple[int, ...]
    cuts: tuple[tuple[str, ...], ...]
    biases: tuple[tuple[str, ...], ...]


def draw_weights(architecture: Architecture, draw: np.random.Generator) -> Weights:
    """Gaussian weights with variance 2/fan-in, nonzero biases, and gains around one."""
    found = {}
    for name, shape in architecture.shapes.items():
        if name == "skip":
            found[name] = np.ones(shape)
        elif name[0] == "g":
            found[name] = draw.uniform(0.5, 1.5, size=shape)
        else:
            fan_in = np.prod(shape[:-1]) if len(shape) > 1 else 10
            found[name] = draw.normal(size=shape) * np.sqrt(2 / fan_in)
    return found


def _dense(activation: Callable[[Any], Any]) -> Architecture:
    def apply(p: Mapping[str, Any], x: Any) -> Any:
        for layer in range(2):
            x = activation(x @ p[f"w{layer}"] + p[f"b{layer}"])
        return x @ p["w2"] + p["b2"]

    widths = (6, _WIDTH, _WIDTH, CLASSES)
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in range(3):
        shapes |= {f"w{layer}": (widths[layer], widths[layer + 1]), f"b{layer}": (widths[layer + 1],)}
    return Architecture(apply, shapes, (6,), (("w0",), ("w1",), ("w2",)), (("b0",), ("b1",), ("b2",)))


def _convolutional(p: Mapping[str, Any], x: Any) -> Any:
    """Two blocks (convolution, batch normalisation with running mean zero, ReLU, max pooling), and a dense layer."""
    for layer in range(2):
        z = (convolved(jnp.asarray(x), p[f"w{layer}"]) + p[f"b{layer}"]) / jnp.sqrt(1 + _EPSILON)
        x = jax.nn.relu(p[f"g{layer}"] * z + p[f"b{layer} of the normalisation"])
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.mean(axis=(1, 2)) @ p["w2"] + p["b2"]


def _residual(p: Mapping[str, Any], x: Any) -> Any:
    """Convolution, a residual block with a pre-activation, mean pooling, and a dense layer."""
    h = jax.nn.relu(convolved(jnp.asarray(x), p["w0"]) + p["b0"])
    branch = convolved(jax.nn.relu(convolved(h, p["w1"]) + p["b1"]), p["w2"]) + p["b2"]
    h = jax.nn.relu(p["skip"] * h + branch)
    return mean_pooled(h, _SIDE)[:, 0, 0] @ p["w3"] + p["b3"]


_KERNEL = (3, 3, _CHANNELS, _CHANNELS)
_FIRST = (3, 3, 1, _CHANNELS)
ZOO: dict[str, Architecture] = {
    "dense, ReLU": _dense(jax.nn.relu),
    "dense, leaky ReLU": _dense(lambda z: jax.nn.leaky_relu(z, 0.2)),
    "convolutional, batch norm, max pooling": Architecture(
        _convolutional,
        {
            **{"w0": _FIRST, "b0": (_CHANNELS,), "g0": (_CHANNELS,), "b0 of the normalisation": (_CHANNELS,)},
            **{"w1": _KERNEL, "b1": (_CHANNELS,), "g1": (_CHANNELS,), "b1 of the normalisation": (_CHANNELS,)},
            **{"w2": (_CHANNELS, CLASSES), "b2": (CLASSES,)},
        },
        (_SIDE, _SIDE, 1),
        (("w0",), ("g0",), ("w1",), ("g1",), ("w2",)),
        (("b0",), ("b0 of the normalisation",), ("b1",), ("b1 of the normalisation",), ("b2",)),
    ),
    "residual, mean pooling": Architecture(
        _residual,
        {
            **{"w0": _FIRST, "b0": (_CHANNELS,), "w1": _KERNEL, "b1": (_CHANNELS,), "w2": _KERNEL, "b2": (_CHANNELS,)},
            **{"skip": (), "w3": (_CHANNELS, CLASSES), "b3": (CLASSES,)},
        },
        (_SIDE, _SIDE, 1),
        (("w0",), ("w1", "skip"), ("w2", "skip"), ("w3",)),
        (("b0",), ("b1",), ("b2",), ("b3",)),
    ),
}
