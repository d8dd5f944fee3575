"""Small networks as functions of their weights and a batch of inputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

from dynascope.symmetry import Charge, SymmetryStructure, find_symmetries
from dynascope.theory.symmetry import (
    LawCount,
    attention_laws,
    homogeneous_laws,
    normalization_laws,
    softmax_laws,
    two_layer_linear_laws,
)

__all__ = ["LAWS", "SMALL", "ZOO", "Formula", "Orbit", "Shapes", "along_orbit", "drawn", "relative_distance"]

Weights = Mapping[str, Any]
Orbit = list[tuple[Charge, np.ndarray]]  # symmetries, each with the direction in which it moves its units


class Formula(eqx.Module):
    """A network f(θ; x) that gradient flow can train.

    Attributes:
        weights: θ, arrays by name.
        apply: f.
        constants: Further arguments of f, not trained; changing their values reuses the compiled program.
    """

    weights: dict[str, Any]
    apply: Callable[..., Any] = eqx.field(static=True)
    constants: dict[str, Any] = eqx.field(default_factory=dict)

    def __call__(self, x: Any) -> Any:
        """Outputs for a batch."""
        return self.apply(self.weights, x, **jax.lax.stop_gradient(self.constants))

    @property
    def flat(self) -> np.ndarray:
        """The weights θ as one vector in tree-leaf order, as in `discover`."""
        return np.concatenate([np.ravel(each) for each in jax.tree.leaves(self.weights)])

    def symmetries(self, inputs: Any) -> SymmetryStructure:
        """The symmetries of the network without constants, found by analysing its program."""
        return find_symmetries(self.apply, self.weights, inputs)

    def orbit(self, inputs: Any, draw: np.random.Generator) -> Orbit:
        """A random path along all symmetries."""
        charges = self.symmetries(inputs).symmetries
        shapes = [(e.units // e.block, *([e.mixed] * 2 if e.kind == "matrix" else [])) for e in charges]
        return [(each, draw.normal(size=shape) / 2) for each, shape in zip(charges, shapes, strict=True)]


class Shapes(NamedTuple):
    """The function and the shapes of a small network.

    Attributes:
        apply: The function f(θ, x).
        shapes: Shapes of the weights by name.
        outputs: Number of outputs.
        inputs: Number of inputs; by default the first dimension of the first weights.
    """

    apply: Callable[[Weights, Any], Any]
    shapes: dict[str, tuple[int, ...]]
    outputs: int
    inputs: int | None = None

    @property
    def entering(self) -> int:
        """Number of inputs."""
        return next(iter(self.shapes.values()))[0] if self.inputs is None else self.inputs


def drawn(network: Shapes, draw: np.random.Generator, scale: float = 1.0) -> Formula:
    """The network with Gaussian weights."""
    weights = {name: scale * draw.normal(size=shape) for name, shape in network.shapes.items()}
    return Formula(weights, network.apply)


def relative_distance(initial: Mapping[str, Any], network: Formula) -> Any:
    """The distance from the initial weights, relative to their norm."""
    pairs = zip(jax.tree.leaves(network.weights), jax.tree.leaves(initial), strict=True)
    squares = [(jnp.sum((one - other) ** 2), jnp.sum(jnp.asarray(other) ** 2)) for one, other in pairs]
    distance, norm = (sum(each) for each in zip(*squares, strict=True))
    return jnp.sqrt(distance / norm)


def along_orbit(orbit: Orbit, theta: Any, place: float) -> Any:
    """The weights at another point of their orbit, reached by applying all symmetries in order."""
    for charge, direction in orbit:
        along = place * direction
        if charge.kind == "matrix":
            along = np.stack([scipy.linalg.expm(each) for each in along])
        elif charge.kind != "translation":
            along = np.exp(along)
        theta = charge.transformed(theta, along)
    return theta


def linear(p: Weights, x: Any) -> Any:
    """Linear layers without biases."""
    for each in p.values():
        x = x @ each
    return x


def relu(p: Weights, x: Any) -> Any:
    """A hidden ReLU layer with biases."""
    return jax.nn.relu(x @ p["first"] + p["bias"]) @ p["second"]


def hyperbolic(p: Weights, x: Any) -> Any:
    """A hidden tanh layer with biases."""
    return jnp.tanh(x @ p["first"] + p["bias"]) @ p["second"]


def classifier(p: Weights, x: Any) -> Any:
    """Class probabilities: a hidden ReLU layer and a softmax."""
    return jax.nn.softmax(relu(p, x) + p["last bias"])


def batch_normalised(p: Weights, x: Any) -> Any:
    """A hidden tanh layer with batch normalisation at ε = 0."""
    z = x @ p["first"] + p["bias"]
    return jnp.tanh((z - z.mean(0)) / jnp.sqrt(z.var(0))) @ p["second"]


def attention(p: Weights, x: Any) -> Any:
    """One causal attention head over the rows of the inputs."""
    scores = (x @ p["queries"]) @ (x @ p["keys"]).T / jnp.sqrt(p["keys"].shape[1])
    mixed = jax.nn.softmax(jnp.where(np.tri(len(x), dtype=bool), scores, -jnp.inf))
    return mixed @ (x @ p["values"]) @ p["outputs"]


def deep_relu(p: Weights, x: Any) -> Any:
    """Two hidden ReLU layers with biases."""
    hidden = jax.nn.relu(x @ p["first"] + p["bias"])
    return jax.nn.relu(hidden @ p["second"] + p["second bias"]) @ p["third"]


def convolutional(p: Weights, x: Any, epsilon: Any = 0.0) -> Any:
    """A convolution, batch normalisation with ε, GELU, and a dense layer."""
    side = round(x.shape[1] ** 0.5)
    numbers = ("NHWC", "HWIO", "NHWC")
    z = jax.lax.conv_general_dilated(
        x.reshape(-1, side, side, 1), p["kernel"], (1, 1), "VALID", dimension_numbers=numbers
    )
    variance = z.var((0, 1, 2))
    z = jax.nn.gelu((z - z.mean((0, 1, 2))) / jnp.sqrt(variance + epsilon))
    return z.reshape(len(x), -1) @ p["dense"]


def transformer(p: Weights, x: Any) -> Any:
    """A transformer block with two heads, squared ReLU and RMS norms with gains, and a linear readout."""
    stream = x.reshape(len(x), -1, len(p["gain"]))
    normal = _scaled(stream) * p["gain"]
    q, k, v = (jnp.reshape(normal @ p[name], (*normal.shape[:2], 2, -1)) for name in ("queries", "keys", "values"))
    weights = jax.nn.softmax(jnp.einsum("nthi,nshi->nhts", q, k) / jnp.sqrt(q.shape[-1]))
    mixed = jnp.einsum("nhts,nshi->nthi", weights, v)
    stream = stream + mixed.reshape(*stream.shape[:2], -1) @ p["outputs"]
    stream = stream + jax.nn.relu(_scaled(stream) * p["second gain"] @ p["in"]) ** 2 @ p["out"]
    return stream.reshape(len(x), -1) @ p["last"]


def _scaled(stream: Any) -> Any:
    return stream / jnp.sqrt(jnp.mean(stream**2, -1, keepdims=True) + 1e-6)


def layers(*widths: int) -> dict[str, tuple[int, ...]]:
    """The shapes of linear layers."""
    return {f"layer {k}": shape for k, shape in enumerate(itertools.pairwise(widths), 1)}


def hidden(inputs: int, width: int, outputs: int, *, last_bias: bool = False) -> dict[str, tuple[int, ...]]:
    """The shapes of a hidden layer with biases and of the layer after it."""
    shapes = {"first": (inputs, width), "bias": (width,), "second": (width, outputs)}
    return shapes | ({"last bias": (outputs,)} if last_bias else {})


def head(width: int, head_width: int) -> dict[str, tuple[int, ...]]:
    """The shapes of an attention head."""
    inner = dict.fromkeys(("queries", "keys", "values"), (width, head_width))
    return inner | {"outputs": (head_width, width)}


SMALL = {
    "linear 2-2-2": Shapes(linear, layers(2, 2, 2), 2),
    "linear 2-2-2-2": Shapes(linear, layers(2, 2, 2, 2), 2),
    "ReLU": Shapes(relu, hidden(2, 2, 1), 1),
    "tanh": Shapes(hyperbolic, hidden(2, 2, 1), 1),
    "ReLU and softmax": Shapes(classifier, hidden(2, 2, 3, last_bias=True), 3),
    "batch norm": Shapes(batch_normalised, hidden(3, 2, 2), 2),
    "attention": Shapes(attention, head(2, 2), 2),
}

_PAIR = two_layer_linear_laws(2, 2, 2)


def _as_many(laws: int) -> LawCount:
    """The law count for commuting symmetries: the bound from one point equals the number of laws."""
    return LawCount(laws, laws)


LAWS = {  # closed forms of the small networks; the bound is the dimension of the orbit
    "linear 2-2-2": _PAIR,
    "linear 2-2-2-2": LawCount(2 * _PAIR.bound, 2 * _PAIR.exact),
    "ReLU": _as_many(homogeneous_laws([2])),
    "tanh": _as_many(0),
    "ReLU and softmax": _as_many(homogeneous_laws([2]) + softmax_laws(2)),
    "batch norm": _as_many(normalization_laws("batch", 2, 3)),
    "attention": LawCount(2 * _PAIR.bound, attention_laws(2, 2)),
}

_TOKENS, _WIDTH, _HEADS_WIDTH, _HIDDEN = 3, 4, 4, 6
_IMAGE = Shapes(convolutional, {"kernel": (3, 3, 1, 3), "dense": (48, 2)}, 2, 36)
ZOO = {
    "deep linear": Shapes(linear, layers(4, 5, 5, 3), 3),
    "ReLU": Shapes(deep_relu, hidden(4, 6, 5) | {"second bias": (5,), "third": (5, 2)}, 2),
    "batch norm": _IMAGE,
    "epsilon": _IMAGE,
    "transformer": Shapes(
        transformer,
        head(_WIDTH, _HEADS_WIDTH)
        | {"gain": (_WIDTH,), "second gain": (_WIDTH,), "in": (_WIDTH, _HIDDEN), "out": (_HIDDEN, _WIDTH)}
        | {"last": (_TOKENS * _WIDTH, 2)},
        2,
        _TOKENS * _WIDTH,
    ),
}
