"""Networks that match the hierarchy, multilayer perceptrons, and the relative scale of their first and last layers."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float, Int

from dynascope.networks import MLP
from dynascope.probes.kernel import neural_tangent_kernel
from dynascope.tasks import RandomHierarchy

__all__ = ["TREE", "StringNetwork", "TreeNetwork", "hidden_features", "largest_eigenvalue", "network", "rescaled"]

TREE = "tree"


class TreeNetwork(eqx.Module):
    """A convolutional ReLU network whose kernels and strides equal the branching s of the hierarchy.

    At each of its L layers, the same weights map the features of s neighbouring nodes to those of their parent node.

    Attributes:
        weights: Weights of each layer, shape (s · input channels, channels), and of the readout.
    """

    weights: tuple[Float[Any, "_ _"], ...]

    def __init__(self, hierarchy: RandomHierarchy, channels: int, seed: int):
        draw, s = np.random.default_rng(seed), hierarchy.branching
        rows = [s * hierarchy.symbols, *[s * channels] * (hierarchy.depth - 1), channels]
        columns = [*[channels] * hierarchy.depth, hierarchy.classes]
        self.weights = tuple(
            draw.normal(size=(fan_in, fan_out)) / np.sqrt(fan_in) for fan_in, fan_out in zip(rows, columns, strict=True)
        )

    def __call__(self, x: Float[Any, "n d"]) -> Float[Any, "n c"]:
        """Compute the outputs for a batch of one-hot strings."""
        return self.hidden(x)[-1] @ self.weights[-1]

    def hidden(self, x: Float[Any, "n d"]) -> list[Float[Any, "n _"]]:
        """Compute the features of each layer."""
        found = []
        for weights in self.weights[:-1]:
            x = jax.nn.relu(x.reshape(-1, len(weights)) @ weights).reshape(len(x), -1)
            found.append(x)
        return found


class StringNetwork(eqx.Module):
    """A network on strings of symbols, which are encoded as centred one-hot vectors with a variance of one.

    Batches of symbols take much less memory than batches of one-hot vectors.

    Attributes:
        network: The network on one-hot vectors, shape (n, d v).
        symbols: Number v of symbols.
    """

    network: TreeNetwork | MLP
    symbols: int = eqx.field(static=True)

    def __call__(self, strings: Any) -> Any:
        """Compute the outputs, shape (n, c), for a batch of strings, shape (n, d)."""
        return self.network(self.encoded(strings))

    def encoded(self, strings: Any) -> Any:
        """Encode strings, shape (n, d v)."""
        one_hot = jax.nn.one_hot(strings, self.symbols, dtype=np.float32)
        centred = (one_hot - 1 / self.symbols) * (self.symbols / math.sqrt(self.symbols - 1))
        return centred.reshape(len(strings), -1)


def network(name: str, hierarchy: RandomHierarchy, width: int, seed: int) -> StringNetwork:
    """Draw the initial weights of the tree, or of a multilayer perceptron with the given number of hidden layers."""
    if name == TREE:
        return StringNetwork(TreeNetwork(hierarchy, width, seed), hierarchy.symbols)
    widths = (hierarchy.length * hierarchy.symbols, *[width] * int(name.split()[0]), hierarchy.classes)
    return StringNetwork(MLP(widths, bias=False, seed=seed), hierarchy.symbols)


def rescaled(start: StringNetwork, relative_scale: float) -> StringNetwork:
    """Divide the first layer by α and multiply the last by α, in single precision. The initial outputs do not change.

    α > 1 is an upstream initialisation: the first layer is smaller and learns faster.
    """
    first, *others, last = start.network.weights
    weights = (first / relative_scale, *others, last * relative_scale)
    return eqx.tree_at(lambda each: each.network.weights, start, tuple(each.astype(np.float32) for each in weights))


def hidden_features(trained: StringNetwork, strings: Int[np.ndarray, "n d"]) -> list[np.ndarray]:
    """Compute the features after each hidden layer."""
    x, inner = trained.encoded(strings), trained.network
    if isinstance(inner, TreeNetwork):
        return [np.asarray(each) for each in inner.hidden(x)]
    return [np.maximum(np.asarray(each), 0) for each in inner.preactivations(x)[:-1]]


def largest_eigenvalue(start: StringNetwork, strings: Int[np.ndarray, "n d"]) -> float:
    """Largest eigenvalue of the neural tangent kernel on n strings, divided by n."""
    kernel = neural_tangent_kernel(_outputs, start, strings)
    matrix = np.asarray(kernel.values, float)  # axes: sample, class, other sample, other class
    size = matrix.shape[0] * matrix.shape[1]
    return float(np.linalg.eigvalsh(matrix.reshape(size, size))[-1] / len(strings))


def _outputs(start: StringNetwork, strings: Any) -> Any:
    return start(strings)
