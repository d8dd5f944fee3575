"""The residual network with eighteen layers, in the variant for small images."""

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

_GROWTH = (1, 2, 4, 8)  # channels of each stage relative to the first
_BLOCKS = 2  # per stage


class ResidualBlock(eqx.Module):
    """A residual block relu(c₂(relu(c₁(x))) + s(x)) with 3 × 3 convolutions and batch normalisation.

    The shortcut s is the identity, or a normalised 1 × 1 convolution if the shape changes.

    Attributes:
        first: Convolution c₁, with the stride of the block.
        second: Convolution c₂.
        shortcut: Convolution s, or None for the identity.
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
        """Compute the outputs, and the block with updated running statistics (unchanged in evaluation)."""
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

    The layers are a 3 × 3 convolution, four stages of two residual blocks with w, 2w, 4w and 8w channels, the mean over
    all pixels, and a linear layer. The first convolution has no stride and is not followed by pooling, unlike in the
    variant for large images. All stages except the first halve the height and width. With w = 64, ten classes and
    colour images, there are 11 173 962 weights.

    Calls and `features` use the running statistics (evaluation mode). `train_step_outputs` uses the batch statistics
    and returns the network with updated running statistics.

    Attributes:
        stem: The first convolution.
        blocks: The eight residual blocks.
        classifier: Weights of the last layer, shape (8w, c): outputs = features @ classifier + classifier_bias. The
            entries are Gaussian with variance 1/(8w).
        classifier_bias: Bias of the last layer, shape (c,), initially zero.
        image_shape: (height, width, channels) of an image.

    Args:
        image_shape: (height, width, channels) of an image, or (height, width) for one channel.
        outputs: Number c of outputs.
        width: Number w of channels of the first stage.
        epsilon: ε ≥ 0 of the batch normalisation.
        seed: Seed of the draw.

    Raises:
        InputError: If a size is not positive, if the weights do not fit into memory, or if ε is negative or not finite.

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
        """Compute the outputs for a batch of images in evaluation mode."""
        return self.features(x) @ self.classifier + self.classifier_bias

    def features(self, x: Float[Array | np.ndarray, "n ..."]) -> Float[Array, "n p"]:
        """Compute the inputs of the last layer for a batch of images in evaluation mode."""
        return self._apply(x, training=False)[0]

    def train_step_outputs(self, x: Float[Array | np.ndarray, "n ..."]) -> tuple[Float[Array, "n c"], ResNet18]:
        """Compute the outputs for a batch in training mode, and the network with updated running statistics."""
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
