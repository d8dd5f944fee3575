"""Networks with symmetries, small enough for every pass, and what the theory of conservation laws says of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dynascope.symmetry import SymmetryStructure, find_symmetries

__all__ = [
    "A1",
    "BATCH",
    "LARGER",
    "N1",
    "NETWORKS",
    "Network",
    "attention",
    "attention_loss",
    "batch_normed",
    "classifier_loss",
    "hidden",
    "structure_of",
    "wave",
]


def wave(function: Callable[[np.ndarray], np.ndarray], rate: float, *shape: int) -> np.ndarray:
    """The test arrays function(rate · k), k = 1, 2, … row by row."""
    return function(rate * np.arange(1, np.prod(shape) + 1)).reshape(shape)


BATCH = wave(np.sin, 1.1, 5, 3)
LABELS = np.array([0, 1, 0, 1, 1])
N1 = {
    "W1": wave(np.sin, 0.7, 4, 3),
    "b1": wave(np.sin, 0.3, 4),
    "W2": wave(np.cos, 0.9, 2, 4),
    "b2": wave(np.cos, 0.2, 2),
}
_HEAD = 0.8 * wave(np.sin, 0.37, 24)
A1 = {
    "Q": _HEAD[:6].reshape(2, 3),
    "K": _HEAD[6:12].reshape(2, 3),
    "V": _HEAD[12:18].reshape(2, 3),
    "O": _HEAD[18:].reshape(3, 2),
    "bQ": np.array([0.6, -0.3]),
    "bV": np.array([0.5, 0.45]),
}


def hidden(p: Any, x: Any) -> Any:
    return jax.nn.relu(x @ p["W1"].T + p["b1"]) @ p["W2"].T + p["b2"]


def hidden_log_probabilities(p: Any, x: Any) -> Any:
    return jax.nn.log_softmax(hidden(p, x))


def normed(z: Any, epsilon: float, axis: int) -> Any:
    return (z - z.mean(axis, keepdims=True)) / jnp.sqrt(z.var(axis, keepdims=True) + epsilon)


def batch_normed(p: Any, x: Any, epsilon: float = 0.0) -> Any:
    return jax.nn.relu(normed(x @ p["W1"].T + p["b1"], epsilon, 0)) @ p["W2"].T + p["b2"]


def batch_normed_with_epsilon(p: Any, x: Any) -> Any:
    return batch_normed(p, x, 1e-3)


def classifier_loss(apply: Callable[..., Any], p: Any) -> Any:
    # Not by indices: JAX 0.10 keeps what it makes of these for another precision.
    return -jnp.sum(jax.nn.log_softmax(apply(p, BATCH)) * np.eye(2)[LABELS]) / len(BATCH)


def attention(p: Any, x: Any) -> Any:
    q, k, v = x @ p["Q"].T + p.get("bQ", 0.0), x @ p["K"].T + p.get("bK", 0.0), x @ p["V"].T + p.get("bV", 0.0)
    scores = q @ k.T / np.sqrt(q.shape[-1])
    weights = jax.nn.softmax(jnp.where(np.tri(len(x), dtype=bool), scores, -jnp.inf))
    return weights @ v @ p["O"].T


def attention_loss(p: Any) -> Any:
    error = attention(p, wave(np.sin, 0.8, 4, 3)) - wave(np.cos, 0.5, 4, 3)
    return 0.5 * jnp.mean(jnp.sum(error**2, -1))


def deep_linear(p: Any, x: Any) -> Any:
    for each in p:
        x = x @ each
    return x


def hyperbolic(p: Any, x: Any) -> Any:
    return jnp.tanh(x @ p["W"] + p["b"]) @ p["a"]


def quadratic_neuron(p: Any, x: Any) -> Any:
    return p["a"] * (x @ p["w"]) ** 2


def cubed(p: Any, x: Any) -> Any:
    return jax.nn.relu(x @ p["W"] + p["b"]) ** 3 @ p["a"]


def functional_leaky(p: Any, x: Any) -> Any:
    z = x @ p["W"]
    return jnp.abs(jnp.where(z > 0, z, 0.2 * z)) @ p["a"]


def layer_normed(p: Any, x: Any) -> Any:
    return (p["gain"] * normed(x @ p["W"] + p["b"], 0.0, 1) + p["shift"]) @ p["A"]


def rms_normed(p: Any, x: Any) -> Any:
    z = x @ p["W"]
    return z * jax.lax.rsqrt(jnp.mean(z**2, -1, keepdims=True)) @ p["A"]


def group_normed(p: Any, x: Any) -> Any:
    z = (x @ p["W"]).reshape(len(x), 2, 3)
    return jax.nn.relu(normed(z, 0.0, 2).reshape(len(x), 6) * p["gain"]) @ p["A"]


def gated(p: Any, x: Any) -> Any:
    return (jax.nn.silu(x @ p["gate"]) * (x @ p["up"])) @ p["down"]


def tied_residual(p: Any, x: Any) -> Any:
    stream = p["embedding"][x]
    return (stream + jax.nn.relu(stream @ p["in"]) @ p["out"]) @ p["embedding"].T


def untied_residual(p: Any, x: Any) -> Any:
    stream = p["embedding"][x]
    return (stream + jax.nn.relu(stream @ p["in"]) @ p["out"]) @ p["head"]


def convolution(x: Any, kernel: Any, stride: int, groups: int) -> Any:
    numbers = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=numbers, feature_group_count=groups
    )


def convolutional(p: Any, x: Any) -> Any:
    x = jax.nn.relu(convolution(x, p["first"], 2, 1) + p["bias"])
    x = jax.nn.relu(convolution(x, p["second"], 1, 2))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.reshape(len(x), -1) @ p["head"]


def rotary(x: Any) -> Any:
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[0])[:, None, None] * jnp.array([1.0, 0.3])[:half]
    one, other = x[..., :half], x[..., half:]
    return jnp.concatenate(
        [one * jnp.cos(angle) - other * jnp.sin(angle), one * jnp.sin(angle) + other * jnp.cos(angle)], -1
    )


def grouped_queries(p: Any, x: Any) -> Any:
    """Two heads of queries share one of keys and values; positions are rotary."""
    q = rotary((x @ p["Q"]).reshape(len(x), 2, 4))
    k, v = rotary((x @ p["K"])[:, None])[:, 0], x @ p["V"]
    weights = jax.nn.softmax(jnp.einsum("thk,sk->hts", q, k))
    return jnp.einsum("hts,sk->thk", weights, v).reshape(len(x), -1) @ p["O"]


def fused_heads(p: Any, x: Any) -> Any:
    parts = jnp.split(x @ p["QKV"] + p["b"], 3, -1)
    q, k, v = (each.reshape(len(x), 2, 2) for each in parts)
    weights = jax.nn.softmax(jnp.einsum("thi,shi->hts", q, k))
    return jnp.einsum("hts,shi->thi", weights, v).reshape(len(x), -1) @ p["O"]


def scanned(p: Any, x: Any) -> Any:
    def step(state: Any, row: Any) -> tuple[Any, None]:
        return jax.nn.relu(state @ p["W"] + row @ p["U"]), None

    state, _ = jax.lax.scan(step, jnp.zeros((x.shape[1], 3)), x)
    return state @ p["a"]


def deep(p: Any, x: Any) -> Any:
    return jax.nn.relu(jax.nn.relu(x @ p["a"] + p["b"]) @ p["c"] + p["d"]) @ p["e"]


def maxout(p: Any, x: Any) -> Any:
    return jnp.maximum(x @ p["a"], x @ p["b"]) @ p["c"]


def weight_normed(p: Any, x: Any) -> Any:
    return jax.nn.relu(x @ (p["gain"] * p["v"] / jnp.linalg.norm(p["v"], axis=0))) @ p["a"]


def with_temperature(p: Any, x: Any) -> Any:
    return jax.nn.softmax((x @ p["Q"]) @ (x @ p["K"]).T * p["t"]) @ x @ p["O"]


def doubly_gated(p: Any, x: Any) -> Any:
    return (jax.nn.relu(x @ p["a"]) * (x @ p["b"])) @ p["c"]


def transformer(p: Any, x: Any) -> Any:
    stream = p["embedding"][x] + p["positions"]
    scores = jnp.einsum("nti,nsi->nts", stream @ p["Q"], stream @ p["K"])
    stream = stream + jax.nn.softmax(scores) @ stream @ p["V"] @ p["O"]
    return (stream + jax.nn.relu(stream @ p["in"]) @ p["out"]) @ p["head"]


def twice(p: Any, x: Any) -> Any:
    return jax.nn.relu(jax.nn.relu(x @ p["W"]) @ p["W"]) @ p["a"]


def cosines(p: Any, x: Any) -> Any:
    return x @ (p["W"] / jnp.linalg.norm(p["W"], axis=0, keepdims=True))


def experts(p: Any, x: Any) -> Any:
    each = jnp.einsum("neh,eho->neo", jax.nn.relu(jnp.einsum("nd,edh->neh", x, p["a"])), p["b"])
    return jnp.einsum("ne,neo->no", jax.nn.softmax(x @ p["router"]), each)


def with_gains(p: Any, x: Any) -> Any:
    return p["s"] * jax.nn.relu(x @ p["a"]) @ p["b"] * p["t"]


def branching(p: Any, x: Any) -> Any:
    return jax.lax.cond(x.sum() > 0, jax.nn.relu, lambda z: 2 * jax.nn.relu(z), x @ p["a"]) @ p["b"]


def stacked(p: Any, x: Any) -> Any:
    """Layers that a loop reads from one stack, each of which is read by a head of its own."""
    _, said = jax.lax.scan(lambda h, w: (jax.nn.relu(h @ w),) * 2, x, p["W"])
    return jnp.einsum("lni,lio->no", said, p["heads"])


def counted(p: Any, x: Any) -> Any:
    return jax.lax.fori_loop(0, 2, lambda i, h: jax.nn.relu(h @ p["W"][i]), x) @ p["a"]


class Network(NamedTuple):
    """A function with parameters and inputs.

    Attributes:
        apply: The function.
        params: Its parameters.
        inputs: Inputs.
        charges: How many charges it conserves, by the ledger or by counting units and pairs of units that mix.
    """

    apply: Callable[[Any, Any], Any]
    params: Any
    inputs: Any
    charges: int


def _network(apply: Callable[[Any, Any], Any], shapes: Any, inputs: tuple[int, ...], charges: int) -> Network:
    random = np.random.default_rng(0)
    is_shape = lambda each: isinstance(each, tuple) and all(isinstance(n, int) for n in each)  # noqa: E731
    params = jax.tree.map(lambda shape: random.normal(size=shape), shapes, is_leaf=is_shape)
    return Network(apply, params, random.normal(size=inputs), charges)


_TOKENS = np.array([[0, 1, 2], [2, 1, 1]])
_HEADS = {"Q": (2, 2), "K": (2, 2), "V": (2, 2), "O": (2, 2)}
_BIASES = {"bQ": (2,), "bK": (2,), "bV": (2,)}
_NORMED = {"W": (2, 3), "b": (3,), "gain": (3,), "shift": (3,), "A": (3, 2)}
_EMBEDDED = {"embedding": (3, 2), "in": (2, 2), "out": (2, 2)}
NETWORKS = {
    "two-layer linear": _network(deep_linear, [(2, 2), (2, 2)], (6, 2), 3),
    "three-layer linear": _network(deep_linear, [(2, 2), (2, 2), (2, 2)], (6, 2), 6),
    "ReLU": _network(hidden, {"W1": (2, 2), "b1": (2,), "W2": (1, 2), "b2": (1,)}, (12, 2), 2),
    "ReLU into softmax": _network(
        hidden_log_probabilities, {"W1": (2, 2), "b1": (2,), "W2": (3, 2), "b2": (3,)}, (12, 2), 5
    ),
    "tanh": _network(hyperbolic, {"W": (2, 2), "b": (2,), "a": (2, 1)}, (12, 2), 0),
    "quadratic neuron": _network(quadratic_neuron, {"w": (2,), "a": ()}, (8, 2), 1),
    "cubed ReLU": _network(cubed, {"W": (2, 2), "b": (2,), "a": (2, 1)}, (12, 2), 2),
    "functional leaky ReLU": _network(functional_leaky, {"W": (2, 3), "a": (3, 1)}, (12, 2), 3),
    "batch norm": _network(batch_normed, {"W1": (3, 2), "b1": (3,), "W2": (1, 3), "b2": (1,)}, (6, 2), 6),
    "layer norm": _network(layer_normed, _NORMED, (6, 2), 1 + 2 + 1 + 3),
    "RMS norm": _network(rms_normed, {"W": (2, 3), "A": (3, 2)}, (6, 2), 1),
    "group norm": _network(group_normed, {"W": (2, 6), "gain": (6,), "A": (6, 1)}, (8, 2), 2 + 4 + 6),
    "gate": _network(gated, {"gate": (2, 2), "up": (2, 2), "down": (2, 1)}, (8, 2), 2),
    "one head": _network(attention, _HEADS, (4, 2), 6),
    "one head with biases": _network(attention, _HEADS | _BIASES, (4, 2), 3 + 3 + 2),
    "tied embedding": _network(tied_residual, _EMBEDDED, (1,), 2)._replace(inputs=_TOKENS),
    "embedding": _network(untied_residual, _EMBEDDED | {"head": (2, 3)}, (1,), 3 + 2)._replace(inputs=_TOKENS),
    "deep ReLU": _network(deep, {"a": (2, 2), "b": (2,), "c": (2, 3), "d": (3,), "e": (3, 1)}, (16, 2), 2 + 3),
    "maxout": _network(maxout, {"a": (2, 3), "b": (2, 3), "c": (3, 1)}, (12, 2), 3),
    "weight norm": _network(weight_normed, {"gain": (3,), "v": (2, 3), "a": (3, 1)}, (12, 2), 3 + 3),
    "temperature": _network(with_temperature, {"Q": (2, 2), "K": (2, 2), "t": (), "O": (2, 1)}, (5, 2), 3 + 1),
    "two gates": _network(doubly_gated, {"a": (2, 3), "b": (2, 3), "c": (3, 1)}, (12, 2), 3 + 3),
    "one weight twice": _network(twice, {"W": (2, 2), "a": (2, 1)}, (12, 2), 1),
    "cosines": _network(cosines, {"W": (2, 3)}, (8, 2), 3),
    "experts": _network(experts, {"router": (2, 2), "a": (2, 2, 2), "b": (2, 2, 1)}, (14, 2), 2 + 4),
    "gains": _network(with_gains, {"s": (), "a": (2, 2), "b": (2, 1), "t": ()}, (12, 2), 2 + 2),
    "branches": _network(branching, {"a": (2, 2), "b": (2, 1)}, (12, 2), 2),
    "transformer": _network(
        transformer, _EMBEDDED | _HEADS | {"positions": (3, 2), "head": (2, 2)}, (1,), 3 + 3 + 3 + 2 + 2
    )._replace(inputs=_TOKENS),
    "stacked": _network(stacked, {"W": (2, 2, 2), "heads": (2, 2, 1)}, (12, 2), 4),
    "counted": _network(counted, {"W": (2, 2, 2), "a": (2, 1)}, (12, 2), 4),
    "recurrent": _network(scanned, {"U": (2, 3), "W": (3, 3), "a": (3, 1)}, (3, 4, 2), 3),
}
LARGER = {
    "convolutions": _network(
        convolutional,
        {"first": (3, 3, 2, 4), "bias": (4,), "second": (3, 3, 2, 4), "head": (16, 3)},
        (2, 8, 8, 2),
        4 + 4,
    ),
    "grouped queries with rotary positions": _network(
        grouped_queries, {"Q": (3, 8), "K": (3, 4), "V": (3, 4), "O": (8, 3)}, (5, 3), 2 + 10
    ),
    "fused heads": _network(fused_heads, {"QKV": (4, 12), "b": (12,), "O": (4, 4)}, (3, 4), 6 + 6 + 4),
}


@functools.cache
def structure_of(name: str) -> SymmetryStructure:
    """The symmetries of one of the networks, found once."""
    network = (NETWORKS | LARGER)[name]
    return find_symmetries(network.apply, network.params, network.inputs)
