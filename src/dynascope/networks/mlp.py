"""Multilayer perceptrons."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import MinLen
from jax import Array
from jaxtyping import Float

from dynascope.validation import checked, require_room
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

__all__ = ["ACTIVATIONS", "MLP", "ActivationName", "with_random_biases"]

ActivationName = Literal["relu", "tanh", "erf", "gelu", "linear"]
ACTIVATIONS: dict[ActivationName, Callable[[Any], Any]] = {
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "erf": jax.scipy.special.erf,
    "gelu": jax.nn.gelu,
    "linear": lambda z: z,
}


class MLP(eqx.Module):
    """A multilayer perceptron f(x) = h_L W_L + b_L with h_1 = x and h_{l+1} = σ(h_l W_l + b_l).

    In the standard parametrisation, the entries of W_l are Gaussian with variance 1/fan-in. In the "ntk"
    parametrisation, the entries of W_l have variance one, and the layer computes h W_l / √fan-in + b_l. Both
    parametrisations have the same initial functions but different effective learning rates. All weights are multiplied
    by `scale`. Biases are initially zero.

    Attributes:
        weights: (W_1, …, W_L), each of shape (input width, output width).
        biases: (b_1, …, b_L), or () without biases.
        activation: Name of σ.
        parametrisation: "standard" or "ntk".

    Args:
        widths: Widths (d, hidden widths, …, c).
        activation: "relu", "tanh", "erf", "gelu" or "linear".
        bias: Whether layers have biases.
        parametrisation: "standard" or "ntk".
        scale: Factor on every weight.
        seed: Seed of the draw.

    Raises:
        InputError: If there are fewer than two widths, if a width is not positive, or if a name is unknown.

    Example:
        >>> network = MLP((3, 16, 8, 2), activation="tanh")
        >>> network(np.ones((4, 3))).shape, network.features(np.ones((4, 3))).shape, network.classifier.shape
        ((4, 2), (4, 8), (8, 2))
    """

    weights: tuple[Float[Array | np.ndarray, "_ _"], ...]
    biases: tuple[Float[Array | np.ndarray, " _"], ...]
    activation: ActivationName = eqx.field(static=True)
    parametrisation: Literal["standard", "ntk"] = eqx.field(static=True)

    @checked
    def __init__(
        self,
        widths: Annotated[Sequence[PositiveInt], MinLen(2)],
        *,
        activation: ActivationName = "relu",
        bias: bool = True,
        parametrisation: Literal["standard", "ntk"] = "standard",
        scale: PositiveFloat = 1.0,
        seed: Seed = 0,
    ):
        require_room(sum(map(math.prod, itertools.pairwise(widths))), widths=max(widths))
        draw = np.random.default_rng(seed)
        deviations = [scale / (math.sqrt(rows) if parametrisation == "standard" else 1.0) for rows in widths[:-1]]
        self.weights = tuple(
            deviation * draw.normal(size=shape)
            for deviation, shape in zip(deviations, itertools.pairwise(widths), strict=True)
        )
        self.biases = tuple(np.zeros(width) for width in widths[1:]) if bias else ()
        self.activation = activation
        self.parametrisation = parametrisation

    def __call__(self, x: Float[Array | np.ndarray, "... d"]) -> Float[Array | np.ndarray, "... c"]:
        """Compute the outputs for one sample or a batch."""
        return self._layer(len(self.weights) - 1, self.features(x))

    def features(self, x: Float[Array | np.ndarray, "... d"]) -> Float[Array | np.ndarray, "... p"]:
        """Compute the inputs of the last layer for one sample or a batch."""
        for layer in range(len(self.weights) - 1):
            x = ACTIVATIONS[self.activation](self._layer(layer, x))
        return x

    def preactivations(self, x: Float[Array | np.ndarray, "... d"]) -> tuple[Float[Array | np.ndarray, "... _"], ...]:
        """Compute h_l W_l + b_l for every layer; the last entry is the output."""
        found = []
        for layer in range(len(self.weights)):
            found.append(self._layer(layer, x))
            x = ACTIVATIONS[self.activation](found[-1])
        return tuple(found)

    @property
    def classifier(self) -> Float[Array | np.ndarray, "p c"]:
        """The matrix of the last layer: outputs = features @ classifier + classifier_bias."""
        return self.weights[-1] * self._gain(len(self.weights) - 1)

    @property
    def classifier_bias(self) -> Float[Array | np.ndarray, " c"]:
        """The bias of the last layer; zero if the network has no biases."""
        return self.biases[-1] if self.biases else np.zeros(self.weights[-1].shape[1])

    def _layer(self, layer: int, h: Array | np.ndarray) -> Array | np.ndarray:
        z = h @ self.weights[layer] * self._gain(layer)
        return z + self.biases[layer] if self.biases else z

    def _gain(self, layer: int) -> float:
        return 1.0 if self.parametrisation == "standard" else 1 / math.sqrt(self.weights[layer].shape[0])


def with_random_biases(network: MLP, draw: np.random.Generator) -> MLP:
    """Replace the biases with uniform random numbers between ±1/√fan-in."""
    biases = tuple(draw.uniform(-1, 1, w.shape[1]) / np.sqrt(w.shape[0]) for w in network.weights)
    return eqx.tree_at(lambda network: network.biases, network, biases)
