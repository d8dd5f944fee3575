"""Feed-forward networks of layers with feedback weights."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Annotated

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from annotated_types import MinLen
from jax import Array
from jaxtyping import Float

from dynascope.interventions.feedback_layers import FeedbackConvolution, FeedbackDense, FeedbackLayer
from dynascope.networks.convolution import ImageShape, as_images, full_image_shape
from dynascope.networks.mlp import ACTIVATIONS, ActivationName
from dynascope.validation import checked, require, require_room
from dynascope.validation.bounded import PositiveInt, Seed

__all__ = ["FeedbackNetwork", "feedback_convolutional", "feedback_mlp"]

_SIDE = 3


@checked
class FeedbackNetwork(eqx.Module):
    """A network of layers with feedback weights, with an activation between the layers.

    Gradients of a function of the outputs, such as `jax.grad(loss)(network)`, are those that the feedback weights send
    back; they are exact if the feedback weights of every layer equal its weights (`with_exact_feedback`).

    Attributes:
        layers: The layers. A layer without feedback weights sends back exact errors; the first layer requires no
            feedback weights.
        activation: "relu", "tanh", "erf", "gelu" or "linear".
        image_shape: (height, width, channels) to which inputs are reshaped, or None.

    Raises:
        InputError: If there is no layer, if two layers share an array (tied weights), or if the name of the activation
            is unknown.

    Example:
        >>> network = feedback_mlp((3, 8, 2))
        >>> network(np.ones((5, 3))).shape, [layer.backward is None for layer in network.layers]
        ((5, 2), [True, False])
    """

    layers: tuple[FeedbackLayer, ...]
    activation: ActivationName = eqx.field(static=True)
    image_shape: tuple[int, int, int] | None = eqx.field(static=True)

    def __init__(
        self,
        layers: Annotated[Sequence[FeedbackLayer], MinLen(1)],
        *,
        activation: ActivationName = "relu",
        image_shape: ImageShape | None = None,
    ):
        held = [each for layer in layers for each in (layer.weights, layer.backward) if each is not None]
        require(
            len({id(each) for each in held}) == len(held),
            "layers share an array, but the learning rules of feedback weights are not defined for tied weights",
            argument="layers",
            remedy="give every layer its own weights and feedback weights",
        )
        self.layers, self.activation = tuple(layers), activation
        self.image_shape = None if image_shape is None else full_image_shape(image_shape)

    def __call__(self, x: Float[Array | np.ndarray, "n ..."]) -> Float[Array, "n c"]:
        """Compute the outputs for a batch."""
        return self.layers[-1](self.activities(x)[-1])

    def activities(self, x: Float[Array | np.ndarray, "n ..."]) -> tuple[Float[Array, "n ..."], ...]:
        """Compute the input of every layer for a batch."""
        found = [jnp.asarray(x) if self.image_shape is None else as_images(x, self.image_shape)]
        for layer in self.layers[:-1]:
            found.append(ACTIVATIONS[self.activation](layer(found[-1])))
        return tuple(found)

    def with_exact_feedback(self) -> FeedbackNetwork:
        """The same network with feedback weights equal to the weights, whose gradients are those of backpropagation."""
        return self.with_backward([None if each.backward is None else each.weights for each in self.layers])

    def with_backward(self, backward: Sequence[Float[Array | np.ndarray, "*_"] | None]) -> FeedbackNetwork:
        """The same network with other feedback weights, one array (or None) for each layer."""
        return eqx.tree_at(
            lambda network: [each.backward for each in network.layers],
            self,
            list(backward),
            is_leaf=lambda leaf: leaf is None,
        )


@checked
def feedback_mlp(
    widths: Annotated[Sequence[PositiveInt], MinLen(2)], *, activation: ActivationName = "relu", seed: Seed = 0
) -> FeedbackNetwork:
    """A multilayer perceptron with random feedback weights.

    The entries of weights and feedback weights are independent and Gaussian with variance 2/fan-in. Biases are zero.
    The first layer has no feedback weights, because its input needs no gradient.

    Args:
        widths: Widths (d, hidden widths, …, c).
        activation: "relu", "tanh", "erf", "gelu" or "linear".
        seed: Seed of the draw.

    Raises:
        InputError: If there are fewer than two widths, or if the activation is unknown.

    Example:
        >>> [layer.weights.shape for layer in feedback_mlp((3, 8, 2)).layers]
        [(3, 8), (8, 2)]
    """
    require_room(2 * sum(map(math.prod, itertools.pairwise(widths))), widths=max(widths))
    draw = np.random.default_rng(seed)
    layers = [_dense(draw, *shape, first=not i) for i, shape in enumerate(itertools.pairwise(widths))]
    return FeedbackNetwork(layers, activation=activation)


@checked
def feedback_convolutional(
    image_shape: ImageShape,
    outputs: PositiveInt,
    *,
    channels: Annotated[Sequence[PositiveInt], MinLen(1)] = (8, 16),
    hidden: Sequence[PositiveInt] = (48,),
    activation: ActivationName = "relu",
    seed: Seed = 0,
) -> FeedbackNetwork:
    """A network of 3 × 3 convolutions with stride two, followed by dense layers, with random feedback weights.

    Weights and feedback weights are drawn as in `feedback_mlp`.

    Args:
        image_shape: (height, width), or (height, width, channels).
        outputs: Number of outputs c.
        channels: Number of output channels of each convolution.
        hidden: Widths of the hidden dense layers.
        activation: "relu", "tanh", "erf", "gelu" or "linear".
        seed: Seed of the draw.

    Raises:
        InputError: If a size is not positive, or if the activation is unknown.

    Example:
        >>> network = feedback_convolutional((8, 8), 10)
        >>> network(np.ones((5, 64))).shape, [layer.weights.shape for layer in network.layers]
        ((5, 10), [(3, 3, 1, 8), (3, 3, 8, 16), (64, 48), (48, 10)])
    """
    draw, (height, width, entering) = np.random.default_rng(seed), full_image_shape(image_shape)
    layers: list[FeedbackLayer] = []
    for i, (before, after) in enumerate(itertools.pairwise((entering, *channels))):
        kernel, backward = _he(draw, 2, _SIDE, _SIDE, before, after)
        layers.append(FeedbackConvolution(kernel, np.zeros(after), backward if i else None, stride=2))
        height, width = -(-height // 2), -(-width // 2)
    for shape in itertools.pairwise((height * width * channels[-1], *hidden, outputs)):
        layers.append(_dense(draw, *shape, first=False))
    return FeedbackNetwork(layers, activation=activation, image_shape=image_shape)


def _dense(draw: np.random.Generator, inputs: int, outputs: int, *, first: bool) -> FeedbackDense:
    weights, backward = _he(draw, 2, inputs, outputs)
    return FeedbackDense(weights, np.zeros(outputs), None if first else backward)


def _he(draw: np.random.Generator, count: int, *shape: int) -> tuple[np.ndarray, ...]:
    return tuple(draw.normal(scale=math.sqrt(2 / math.prod(shape[:-1])), size=shape) for _ in range(count))
