"""The VGG network with sixteen layers, in the variant for small images."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import equinox as eqx
import jax
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.networks.convolution import Convolution, ImageShape, as_images, full_image_shape
from dynascope.validation import checked, require_room
from dynascope.validation.bounded import NonNegativeFloat, PositiveInt, Seed

__all__ = ["VGG16"]

# Number of convolutions of each stage, and their channels relative to the first stage.
_CONVOLUTIONS, _GROWTH = (2, 2, 3, 3, 3), (1, 2, 4, 8, 8)
_POOLED = 2


class VGG16(eqx.Module):
    """A VGG network for images of about 32 × 32 pixels: thirteen convolutions in five stages, then dense layers.

    The stages have 2, 2, 3, 3 and 3 convolutions of 3 × 3 pixels with w, 2w, 4w, 8w and 8w channels. Each convolution
    has a bias, optional batch normalisation and a ReLU. After each stage, 2 × 2 max pooling halves the height and
    width, rounded down. A side of one pixel is not pooled, so small images are allowed. The mean over the remaining
    pixels is the input of the hidden dense layers (with ReLU and without dropout), which are followed by a linear
    layer.

    Without batch normalisation, training fails on images much smaller than 32 × 32. Once a single pixel remains, it is
    surrounded by zeros, and each convolution reduces the signal to a third.

    With w = 64, ten classes, colour images, batch normalisation and no hidden dense layers, there are 14 728 266
    weights. The original network has two hidden dense layers of width 4096, and thus sixteen layers.

    Calls and `features` use the running statistics (evaluation mode). `train_step_outputs` uses the batch statistics
    and returns the network with updated running statistics.

    Attributes:
        convolutions: The thirteen convolutions.
        hidden: Weights of the hidden dense layers, Gaussian with variance 2/fan-in.
        hidden_biases: Biases of the hidden dense layers, initially zero.
        classifier: Weights of the last layer, shape (p, c): outputs = features @ classifier + classifier_bias. The
            entries are Gaussian with variance 1/p, where p is the width of the last hidden dense layer, or 8w if there
            is none.
        classifier_bias: Bias of the last layer, shape (c,), initially zero.
        image_shape: (height, width, channels) of an image.

    Args:
        image_shape: (height, width, channels) of an image, or (height, width) for one channel.
        outputs: Number c of outputs.
        width: Number w of channels of the first stage.
        hidden_widths: Widths of the hidden dense layers.
        batch_normalisation: Whether the convolutions have batch normalisation.
        epsilon: ε ≥ 0 of the batch normalisation.
        seed: Seed of the draw.

    Raises:
        InputError: If a size is not positive, if the weights do not fit into memory, or if ε is negative or not finite.

    References:
        K. Simonyan and A. Zisserman, Very deep convolutional networks for large-scale image recognition,
        arXiv:1409.1556, configuration D.

    Example:
        >>> network = VGG16((8, 8, 3), 10, width=2)
        >>> images = np.zeros((4, 8, 8, 3))
        >>> jax.eval_shape(network, images).shape, jax.eval_shape(network.features, images.reshape(4, -1)).shape
        ((4, 10), (4, 16))
    """

    convolutions: tuple[Convolution, ...]
    hidden: tuple[Float[Array | np.ndarray, "_ _"], ...]
    hidden_biases: tuple[Float[Array | np.ndarray, " _"], ...]
    classifier: Float[Array | np.ndarray, "p c"]
    classifier_bias: Float[Array | np.ndarray, " c"]
    image_shape: tuple[int, int, int] = eqx.field(static=True)

    @checked
    def __init__(
        self,
        image_shape: ImageShape,
        outputs: PositiveInt,
        *,
        width: PositiveInt = 64,
        hidden_widths: Sequence[PositiveInt] = (),
        batch_normalisation: bool = True,
        epsilon: NonNegativeFloat = 1e-5,
        seed: Seed = 0,
    ):
        self.image_shape = full_image_shape(image_shape)
        draw = np.random.default_rng(seed)
        stages = zip(_CONVOLUTIONS, _GROWTH, strict=True)
        channels = [self.image_shape[2], *(width * growth for count, growth in stages for _ in range(count))]
        dense = list(itertools.pairwise([channels[-1], *hidden_widths]))
        last = dense[-1][1] if dense else channels[-1]
        numbers = 9 * sum(map(math.prod, itertools.pairwise(channels))) + sum(map(math.prod, dense))
        widest = max(hidden_widths, default=0)
        require_room(numbers + last * outputs, outputs=outputs, width=width, hidden_widths=widest)
        self.convolutions = tuple(
            Convolution(entering, leaving, draw, bias=True, normalise=batch_normalisation, epsilon=epsilon)
            for entering, leaving in itertools.pairwise(channels)
        )
        self.hidden = tuple(draw.normal(scale=math.sqrt(2 / shape[0]), size=shape) for shape in dense)
        self.hidden_biases = tuple(np.zeros(each) for each in hidden_widths)
        self.classifier = draw.normal(scale=last**-0.5, size=(last, outputs))
        self.classifier_bias = np.zeros(outputs)

    def __call__(self, x: Float[Array | np.ndarray, "n ..."]) -> Float[Array, "n c"]:
        """Compute the outputs for a batch of images in evaluation mode."""
        return self.features(x) @ self.classifier + self.classifier_bias

    def features(self, x: Float[Array | np.ndarray, "n ..."]) -> Float[Array, "n p"]:
        """Compute the inputs of the last layer for a batch of images in evaluation mode."""
        return self._apply(x, training=False)[0]

    def train_step_outputs(self, x: Float[Array | np.ndarray, "n ..."]) -> tuple[Float[Array, "n c"], VGG16]:
        """Compute the outputs for a batch in training mode, and the network with updated running statistics."""
        features, network = self._apply(x, training=True)
        return features @ self.classifier + self.classifier_bias, network

    def _apply(self, x: Float[Array | np.ndarray, "n ..."], *, training: bool) -> tuple[Float[Array, "n p"], VGG16]:
        images = as_images(x, self.image_shape)
        ends = set(itertools.accumulate(_CONVOLUTIONS))
        convolutions = []
        for place, convolution in enumerate(self.convolutions, start=1):
            images, convolution = convolution.apply(images, training=training)
            convolutions.append(convolution)
            images = jax.nn.relu(images)
            images = _pooled(images) if place in ends else images
        network = eqx.tree_at(lambda each: each.convolutions, self, tuple(convolutions))
        h = images.mean(axis=(1, 2))
        for weights, bias in zip(self.hidden, self.hidden_biases, strict=True):
            h = jax.nn.relu(h @ weights + bias)
        return h, network


def _pooled(images: Float[Array, "n height width channels"]) -> Float[Array, "n _ _ channels"]:
    window = (1, *(min(_POOLED, side) for side in images.shape[1:3]), 1)
    return jax.lax.reduce_window(images, -np.inf, jax.lax.max, window, window, "VALID")
