"""Deep linear networks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Annotated

import equinox as eqx
import numpy as np
from annotated_types import Interval, MinLen
from jax import Array
from jaxtyping import Float

from dynascope.networks.mlp import MLP
from dynascope.networks.two_layer import TwoLayer
from dynascope.protocols import Network
from dynascope.validation import checked, require_kind, require_room
from dynascope.validation.bounded_scalars import FiniteFloat, PositiveFloat, PositiveInt, Seed

__all__ = ["DeepLinear", "linear_layers", "product_layers"]

_LARGEST = 300.0  # logarithm of the scale of a layer; its square must not overflow


class DeepLinear(eqx.Module):
    """A deep linear network f(x) = x W₁ W₂ ⋯ W_L.

    The entries of layer ℓ are Gaussian with standard deviation

        scale · exp(balance·(ℓ − (L+1)/2)) / √(output width).

    Attributes:
        weights: (W₁, …, W_L), each of shape (width_in, width_out).

    Args:
        widths: Widths (d, hidden widths, …, c).
        scale: Factor on every weight.
        balance: Logarithm of the ratio of the scales of successive layers.
        seed: Seed of the draw.

    Raises:
        InputError: If there are fewer than two widths, if a width is not positive, or if the balance is not finite or
            too large.

    Example:
        >>> network = DeepLinear((3, 8, 8, 2), scale=0.1)
        >>> import jax.numpy as jnp
        >>> network(jnp.ones((4, 3))).shape, network.degree
        ((4, 2), 3)
    """

    weights: tuple[Float[Array | np.ndarray, "_ _"], ...]

    @checked
    def __init__(
        self,
        widths: Annotated[Sequence[PositiveInt], MinLen(2)],
        *,
        scale: PositiveFloat = 1.0,
        balance: FiniteFloat = 0.0,
        seed: Seed = 0,
    ):
        require_room(sum(map(math.prod, itertools.pairwise(widths))), widths=max(widths))
        largest = _LARGEST / max((len(widths) - 2) / 2, 1)
        require_kind(Annotated[float, Interval(ge=-largest, le=largest)], balance=balance)
        draw = np.random.default_rng(seed)
        middle = (len(widths) - 2) / 2
        layers = []
        for i, (rows, columns) in enumerate(itertools.pairwise(widths)):
            deviation = scale / math.sqrt(columns) * math.exp(balance * (i - middle))
            layers.append(draw.normal(size=(rows, columns)) * deviation)
        self.weights = tuple(layers)

    @property
    def degree(self) -> int:
        """Degree of homogeneity κ of the network in its weights, equal to the depth."""
        return len(self.weights)

    def __call__(self, x: Float[Array | np.ndarray, "... d"]) -> Float[Array | np.ndarray, "... c"]:
        """Compute the outputs for one sample or a batch."""
        for weight in self.weights:
            x = x @ weight
        return x


def linear_layers(network: Network) -> tuple[np.ndarray, np.ndarray] | None:
    """Return (W₁, W₂) in float64 if the network is f(x) = x W₁ W₂; otherwise None.

    Args:
        network: Any network.

    Example:
        >>> first, second = linear_layers(TwoLayer(3, 5, 2))
        >>> first.shape, second.shape, linear_layers(DeepLinear((3, 5, 5, 2)))
        ((3, 5), (5, 2), None)
    """
    if isinstance(network, TwoLayer) and network.activation.linear and network.activation.positive == 1:
        return np.asarray(network.first, np.float64), np.asarray(network.second, np.float64)
    layers = product_layers(network)
    return None if layers is None or len(layers) != 2 else (layers[0], layers[1])


def product_layers(network: Network) -> tuple[np.ndarray, ...] | None:
    """Return (W₁, …, W_L) in float64 if the network is a `DeepLinear` or an equivalent `MLP`; otherwise None."""
    if isinstance(network, MLP):
        nonlinear = network.activation != "linear" and len(network.weights) > 1
        if nonlinear or network.biases or network.parametrisation != "standard":
            return None
    elif not isinstance(network, DeepLinear):
        return None
    return tuple(np.asarray(weight, np.float64) for weight in network.weights)
