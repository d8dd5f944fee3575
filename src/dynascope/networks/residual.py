"""The residual network of eighteen layers, in the variant for small images."""

from __future__ import annotations

import itertools

import equinox as eqx
import jax
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.networks.convolution import Convolution, ImageShape, as_images, full_image_shape
from dynascope.validation import checked, require_room
from dynascope.validation.bounded import NonNegativeFloat, PositiveInt, Seed

__all__ = ["ResNet18", "ResidualBlock"]

_GROWTH = (1, 2, 4, 8)  # channels of the stages, over those of the first
_BLOCKS = 2  # in a stage


class ResidualBlock(eqx.Module):
    """relu(c₂(relu(c₁(x))) + s(x)) with convolutions c₁ and c₂ of 3 × 3 pixels, each with batch normalisation.

    The shortcut s is the identity, or a normalised convolution of 1 × 1 pixel where the shape changes.

    Attributes:
        first: c₁, with the stride of the block.
        second: c₂.
        shortcut: s, or None for the identity.
    """

    first: Convolution
    second: Convolution
    shortcut: Convolution | None

    def __init__(self, entering: int, leaving: int, stride: int, draw: np.random.Generator, *, epsilon: float = 1e-5):
        self.first = Convolution(entering, leaving, draw, stride=stride, epsilon=epsilon)
        self.second = Convolution(leaving, leaving, draw, epsilon=epsilon)
        same = entering == leaving and stride == 1
        self.shortcut = None if same else Convolution(entering, leaving, draw, side=1, stride=stride, epsilon=epsilon)

    def apply(
        self, x: Float[Array, "n height width entering"], *, training: bool
    ) -> tuple[Float[Array, "n _ _ leaving"], ResidualBlock]:
        """Outputs, and the block with its new running statistics, or the same ones in evaluation."""
        z, first = self.first.apply(x, training=training)
        z, second = self.second.apply(jax.nn.relu(z), training=training)
        shortcut = self.shortcut
        if shortcut is not None:
            x, shortcut = shortcut.apply(x, training=training)
        block = eqx.tree_at(
            lambda each: (each.first, each.second, each.shortcut),
            self,
            (first, second, shortcut),
            is_leaf=lambda each: each is None,
        )
        return jax.nn.relu(z + x), block


class ResNet18(eqx.Module):
    """The residual network with eighteen layers for images of about 32 × 32 pixels.

    A convolution of 3 × 3 pixels, without the stride and the pooling of the variant for large images; four stages of
    two residual blocks with w, 2w, 4w, 8w channels, of which all but the first halve the image; the mean over the
    pixels that are left; a linear layer. With w = 64 and ten classes of colour images it has 11 173 962 weights.

    Calls and `features` are those of evaluation, with running statistics. In training, `train_step_outputs` uses the
    statistics of the batch and returns the network with new running statistics.

    Attributes:
        stem: The first convolution.
        blocks: The eight residual blocks.
        classifier: Weights of the last layer, shape (8w, c): outputs = features @ classifier + classifier_bias. Its
            entries are Gaussian with variance 1/(8w).
        classifier_bias: Its bias, shape (c,), zero at the start.
        image_shape: (height, width, channels) of an image.

    Args:
        image_shape: (height, width, channels) of an image, or (height, width) for one channel.
        outputs: c, the number of outputs.
        width: w, the channels of the first stage.
        epsilon: ε ≥ 0 of the batch normalisation.
        seed: Seed of the draw.

    Raises:
        InputError: A size is not positive, or so large that the weights do not fit into the memory, or ε is negative or
            not finite.

    References:
        K. He et al., Deep residual learning for image recognition, arXiv:1512.03385.

    Example:
        >>> network = ResNet18((8, 8, 3), 10, width=2)
        >>> images = np.zeros((4, 8, 8, 3))
        >>> jax.eval_shape(network, images).shape, jax.eval_shape(network.features, images.reshape(4, -1)).shape
        ((4, 10), (4, 16))
    """

    stem: Convolution
    blocks: tuple[ResidualBlock, ...]
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
        epsilon: NonNegativeFloat = 1e-5,
        seed: Seed = 0,
    ):
        self.image_shape = full_image_shape(image_shape)
        draw = np.random.default_rng(seed)
        channels = [width, *(width * growth for growth in _GROWTH for _ in range(_BLOCKS))]
        kernels = self.image_shape[2] * width + sum(i * o + o * o for i, o in itertools.pairwise(channels))
        require_room(9 * kernels + channels[-1] * outputs, outputs=outputs, width=width)
        self.stem = Convolution(self.image_shape[2], width, draw, epsilon=epsilon)
        self.blocks = tuple(
            ResidualBlock(entering, leaving, 1 if entering == leaving else 2, draw, epsilon=epsilon)
            for entering, leaving in itertools.pairwise(channels)
        )
        self.classifier = draw.normal(scale=channels[-1] ** -0.5, size=(channels[-1], outputs))
        self.classifier_bias = np.zeros(outputs)

    def __call__(self, x: Float[Array | np.ndarray, "n ..."]) -> Float[Array, "n c"]:
        """Outputs for a batch of images in evaluation."""
        return self.features(x) @ self.classifier + self.classifier_bias

    def features(self, x: Float[Array | np.ndarray, "n ..."]) -> Float[Array, "n p"]:
        """The inputs of the last layer for a batch of images in evaluation."""
        return self._apply(x, training=False)[0]

    def train_step_outputs(self, x: Float[Array | np.ndarray, "n ..."]) -> tuple[Float[Array, "n c"], ResNet18]:
        """Outputs for a batch of images in training, and the network with its new running statistics."""
        features, network = self._apply(x, training=True)
        return features @ self.classifier + self.classifier_bias, network

    def _apply(self, x: Float[Array | np.ndarray, "n ..."], *, training: bool) -> tuple[Float[Array, "n p"], ResNet18]:
        images, stem = self.stem.apply(as_images(x, self.image_shape), training=training)
        images = jax.nn.relu(images)
        blocks = []
        for block in self.blocks:
            images, block = block.apply(images, training=training)
            blocks.append(block)
        network = eqx.tree_at(lambda each: (each.stem, each.blocks), self, (stem, tuple(blocks)))
        return images.mean(axis=(1, 2)), network
