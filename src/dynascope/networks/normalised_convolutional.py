"""A small convolutional network with batch normalisation, for square images."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.networks.convolution import convolved, mean_pooled
from dynascope.validation import require

__all__ = ["NormalisedConvolutional"]

_KERNEL, _POOLED = 3, 2


class NormalisedConvolutional(eqx.Module):
    """A network of 3 × 3 convolutions, each with batch normalisation, ReLU and mean pooling, and two dense layers.

    The pooling averages 2 × 2 pixels. The normalisation γ (z − μ)/σ + β has ε = 0 and uses the batch mean and standard
    deviation, even in evaluation, so the symmetries of the network are exact. The convolutions have no bias, because
    the normalisation would remove it. Weights are Gaussian with variance 2/fan-in, or 1/fan-in in the last layer.

    Attributes:
        kernels: One array per convolution, shape (3, 3, input channels, output channels).
        gains: γ of each convolution, initially one.
        shifts: β of each convolution, initially zero.
        hidden: Weights of the hidden dense layer with ReLU, shape (pixels · channels, width).
        hidden_bias: Bias of the hidden layer, shape (width,), initially zero.
        classifier: Weights of the last layer, shape (width, c).
        classifier_bias: Bias of the last layer, shape (c,), with the same initial distribution as the weights of the
            last layer.
        side: Height and width of an image in pixels.
        colours: Number of channels of an image.

    Args:
        side: Height and width of an image in pixels.
        outputs: Number c of outputs.
        channels: Number of output channels of each convolution; after each convolution, pooling halves the height and
            width.
        width: Number of neurons of the hidden dense layer.
        colours: Number of channels of an image; the channels of a pixel are adjacent.
        seed: Seed of the draw.

    Raises:
        InputError: If the image is too small for the number of convolutions.

    Example:
        >>> network = NormalisedConvolutional(8, 10, channels=(2, 3), width=5)
        >>> eqx.filter_jit(network)(np.random.default_rng(0).normal(size=(6, 64))).shape
        (6, 10)
    """

    kernels: tuple[Float[Array | np.ndarray, "3 3 _ _"], ...]
    gains: tuple[Float[Array | np.ndarray, " _"], ...]
    shifts: tuple[Float[Array | np.ndarray, " _"], ...]
    hidden: Float[Array | np.ndarray, "pixels width"]
    hidden_bias: Float[Array | np.ndarray, " width"]
    classifier: Float[Array | np.ndarray, "width c"]
    classifier_bias: Float[Array | np.ndarray, " c"]
    side: int = eqx.field(static=True)
    colours: int = eqx.field(static=True)

    def __init__(
        self, side: int, outputs: int, *, channels: Sequence[int], width: int, colours: int = 1, seed: int = 0
    ):
        left = side // _POOLED ** len(channels)
        require(
            left > 0,
            f"channels has length {len(channels)}, but images of {side} × {side} pixels are too small for "
            "this number of convolutions",
            argument="channels",
            value=tuple(channels),
            remedy="choose fewer convolutions",
        )
        draw = np.random.default_rng(seed)

        def weights(*shape: int, power: float = 2.0) -> np.ndarray:
            return draw.normal(size=shape) * math.sqrt(power / math.prod(shape[:-1]))

        self.kernels = tuple(weights(_KERNEL, _KERNEL, *each) for each in itertools.pairwise((colours, *channels)))
        self.gains, self.shifts = tuple(map(np.ones, channels)), tuple(map(np.zeros, channels))
        self.hidden = weights(left**2 * channels[-1], width)
        self.hidden_bias = np.zeros(width)
        self.classifier = weights(width, outputs, power=1.0)
        self.classifier_bias = draw.normal(size=outputs) * width**-0.5
        self.side, self.colours = side, colours

    def __call__(self, x: Float[Array | np.ndarray, "n ..."]) -> Float[Array, "n c"]:
        """Compute the outputs for a batch of images, which may be flat."""
        images = jnp.asarray(x).reshape(len(x), self.side, self.side, self.colours)
        for kernel, gain, shift in zip(self.kernels, self.gains, self.shifts, strict=True):
            z, over = convolved(images, kernel), (0, 1, 2)
            images = jax.nn.relu(gain * (z - jnp.mean(z, axis=over)) / jnp.std(z, axis=over) + shift)
            images = mean_pooled(images, _POOLED)
        h = jax.nn.relu(images.reshape(len(images), -1) @ self.hidden + self.hidden_bias)
        return h @ self.classifier + self.classifier_bias
