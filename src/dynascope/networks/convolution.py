"""Convolution and pooling of images, and a convolution layer with optional batch normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Len
from jax import Array
from jaxtyping import Float

from dynascope.networks.batch_normalisation import BatchNormalisation
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveInt

__all__ = ["Convolution", "ImageShape", "as_images", "convolved", "full_image_shape", "mean_pooled"]

# (height, width), for one channel, or (height, width, channels)
ImageShape: TypeAlias = Annotated[Sequence[PositiveInt], Len(2, 3)]


class Convolution(eqx.Module):
    """A convolution layer z = N(K ∗ x + b) with zero padding, which preserves the image size if the stride is one.

    The entries of K are Gaussian with variance 2/fan-in, which preserves the size of the signal in ReLU networks (K. He
    et al., arXiv:1502.01852).

    Attributes:
        kernel: K, shape (side, side, input channels, output channels).
        bias: b, shape (output channels,), initially zero; or None.
        normalisation: Batch normalisation N, or None.
        stride: Stride in pixels.
    """

    kernel: Float[Array | np.ndarray, "side side entering leaving"]
    bias: Float[Array | np.ndarray, " leaving"] | None
    normalisation: BatchNormalisation | None
    stride: int = eqx.field(static=True)

    def __init__(
        self,
        entering: int,
        leaving: int,
        draw: np.random.Generator,
        *,
        side: int = 3,
        stride: int = 1,
        bias: bool = False,
        normalise: bool = True,
        epsilon: float = 1e-5,
    ):
        deviation = math.sqrt(2 / (side**2 * entering))
        self.kernel = draw.normal(scale=deviation, size=(side, side, entering, leaving))
        self.bias = np.zeros(leaving) if bias else None
        self.normalisation = BatchNormalisation(leaving, epsilon=epsilon) if normalise else None
        self.stride = stride

    def apply(
        self, x: Float[Array, "n height width entering"], *, training: bool
    ) -> tuple[Float[Array, "n _ _ leaving"], Convolution]:
        """Compute the outputs, and the layer with updated running statistics (unchanged in evaluation)."""
        z = convolved(x, self.kernel, stride=self.stride)
        z = z if self.bias is None else z + self.bias
        if self.normalisation is None:
            return z, self
        z, normalisation = self.normalisation.apply(z, training=training)
        return z, eqx.tree_at(lambda each: each.normalisation, self, normalisation)


def convolved(
    images: Float[Array, "n height width entering"],
    kernel: Float[Array | np.ndarray, "side side entering leaving"],
    *,
    stride: int = 1,
) -> Float[Array, "n _ _ leaving"]:
    """Compute K ∗ x with zero padding, for a kernel with an odd side; with stride one, the image size is preserved."""
    padding = (kernel.shape[0] - 1) // 2
    return jax.lax.conv_general_dilated(
        images,
        jnp.asarray(kernel).astype(images.dtype),
        (stride, stride),
        ((padding, padding), (padding, padding)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def mean_pooled(images: Float[Array, "n height width channels"], side: int) -> Float[Array, "n _ _ channels"]:
    """Average over non-overlapping squares; rows and columns that do not fill a square are dropped."""
    n, height, width, channels = images.shape
    rows, columns = height // side, width // side
    blocks = images[:, : rows * side, : columns * side]
    return blocks.reshape(n, rows, side, columns, side, channels).mean(axis=(2, 4))


def full_image_shape(image_shape: ImageShape) -> tuple[int, int, int]:
    """Extend an image shape to (height, width, channels), with one channel by default."""
    height, width, *channels = image_shape
    return height, width, channels[0] if channels else 1


def as_images(
    x: Float[Array | np.ndarray, "n ..."], image_shape: tuple[int, int, int]
) -> Float[Array, "n height width channels"]:
    """Reshape a batch of images, or of flat images in which the channels of a pixel are adjacent.

    Raises:
        InputError: If the images do not have the given shape.
    """
    require(
        x.shape[1:] in (image_shape, (math.prod(image_shape),)),
        f"x has shape {x.shape}",
        argument="x",
        value=x.shape,
        remedy=f"pass images of shape {image_shape}, or flat images of length {math.prod(image_shape)}",
    )
    return jnp.asarray(x).reshape(len(x), *image_shape)
