"""A small convolutional network for images with one channel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from annotated_types import Len, MinLen
from jax import Array
from jaxtyping import Float

from dynascope.networks.convolution import convolved, mean_pooled
from dynascope.networks.mlp import ACTIVATIONS, ActivationName
from dynascope.validation import checked, require, require_room
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

__all__ = ["Convolutional"]

_KERNEL = 3
_POOLED = 2


class Convolutional(eqx.Module):
    """A network of 3 × 3 convolutions, each followed by the activation and 2 × 2 mean pooling, and two dense layers.

    With zero padding, a convolution preserves the image size; pooling halves the height and width, rounded down.
    Weights are Gaussian with standard deviation `scale`/√fan-in, and biases are initially zero.

    Attributes:
        kernels: One array per convolution, shape (3, 3, input channels, output channels).
        kernel_biases: One array per convolution, shape (output channels,).
        hidden: Weights of the dense layer that computes the features, shape (pixels · channels, width).
        hidden_bias: Bias of the dense layer that computes the features, shape (width,).
        classifier: Weights of the last layer, shape (width, c): outputs = features @ classifier + classifier_bias.
        classifier_bias: Bias of the last layer, shape (c,).
        image_shape: (height, width) of an image.
        activation: Name of the activation.

    Args:
        image_shape: (height, width) of an image; each input contains the pixels of an image, row by row.
        outputs: Number c of outputs.
        channels: Number of output channels of each convolution.
        width: Number p of features.
        activation: "relu", "tanh", "erf", "gelu" or "linear".
        scale: Factor on every weight.
        seed: Seed of the draw.

    Raises:
        InputError: If a size is not positive, if the weights do not fit into memory, if the image is too small for the
            number of convolutions, or if the activation is unknown.

    Example:
        >>> network = Convolutional((8, 8), 10, channels=(4, 8), width=32)
        >>> images = np.ones((5, 64))
        >>> eqx.filter_jit(network)(images).shape, eqx.filter_jit(network.features)(images).shape
        ((5, 10), (5, 32))
    """

    kernels: tuple[Float[Array | np.ndarray, "3 3 _ _"], ...]
    kernel_biases: tuple[Float[Array | np.ndarray, " _"], ...]
    hidden: Float[Array | np.ndarray, "pixels p"]
    hidden_bias: Float[Array | np.ndarray, " p"]
    classifier: Float[Array | np.ndarray, "p c"]
    classifier_bias: Float[Array | np.ndarray, " c"]
    image_shape: tuple[int, int] = eqx.field(static=True)
    activation: ActivationName = eqx.field(static=True)

    @checked
    def __init__(
        self,
        image_shape: Annotated[Sequence[PositiveInt], Len(2, 2)],
        outputs: PositiveInt,
        *,
        channels: Annotated[Sequence[PositiveInt], MinLen(1)] = (8, 16),
        width: PositiveInt = 64,
        activation: ActivationName = "relu",
        scale: PositiveFloat = 1.0,
        seed: Seed = 0,
    ):
        shrunk = [side // _POOLED ** len(channels) for side in image_shape]
        require(
            min(shrunk) > 0,
            f"image_shape is {tuple(image_shape)}, which is too small for {len(channels)} "
            f"convolution{'s' * (len(channels) > 1)}",
            argument="image_shape",
            value=tuple(image_shape),
            remedy=f"choose a height and width of at least {_POOLED ** len(channels)}, or fewer convolutions",
        )
        entering = (1, *channels[:-1])
        numbers = sum(_KERNEL**2 * math.prod(each) for each in zip(entering, channels, strict=True))
        numbers += (math.prod(shrunk) * channels[-1] + outputs) * width
        require_room(numbers, outputs=outputs, width=width, channels=max(channels), image_shape=max(image_shape))
        draw = np.random.default_rng(seed)

        def weights(*shape: int) -> np.ndarray:
            return scale / math.sqrt(math.prod(shape[:-1])) * draw.normal(size=shape)

        self.kernels = tuple(weights(_KERNEL, _KERNEL, i, o) for i, o in zip(entering, channels, strict=True))
        self.kernel_biases = tuple(np.zeros(each) for each in channels)
        self.hidden = weights(math.prod(shrunk) * channels[-1], width)
        self.hidden_bias = np.zeros(width)
        self.classifier = weights(width, outputs)
        self.classifier_bias = np.zeros(outputs)
        self.image_shape = (int(image_shape[0]), int(image_shape[1]))
        self.activation = activation

    def __call__(self, x: Float[Array | np.ndarray, "n d"]) -> Float[Array, "n c"]:
        """Compute the outputs for a batch of images."""
        return self.features(x) @ self.classifier + self.classifier_bias

    def features(self, x: Float[Array | np.ndarray, "n d"]) -> Float[Array, "n p"]:
        """Compute the inputs of the last layer for a batch of images."""
        activation = ACTIVATIONS[self.activation]
        images = jnp.asarray(x).reshape(len(x), *self.image_shape, 1)
        for kernel, bias in zip(self.kernels, self.kernel_biases, strict=True):
            images = mean_pooled(activation(convolved(images, kernel) + bias), _POOLED)
        return activation(images.reshape(len(x), -1) @ self.hidden + self.hidden_bias)
