"""Data augmentation for image classifiers: random crops and horizontal flips."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Num

from dynascope.compilation import jit
from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import NonNegativeInt

__all__ = ["CropAndFlip"]


@checked
@dataclasses.dataclass(frozen=True)
class CropAndFlip:
    """Random crops of zero-padded images, and horizontal flips with probability ½.

    An image x of h × w pixels is padded with p zeros on every side. The padded image X is then cropped to the original
    size,

        z[i, j] = X[a + i, b + j],

    with a and b uniform on 0, …, 2p. With probability ½, the crop is then flipped to z[i, w − 1 − j]. All draws are
    independent.

    An instance can be called inside and outside `jax.jit`. Instances with equal attributes share compiled programs. A
    key produces the same images in single and double precision.

    Attributes:
        padding: Number p of zeros on every side, at least 0; 0 disables cropping.
        flip: Whether images are flipped at random.

    Raises:
        InputError: If the padding is not a non-negative integer, or if `flip` is not a boolean.

    References:
        K. He et al., Deep residual learning for image recognition, arXiv:1512.03385, section 4.2.

    Example:
        >>> augment = CropAndFlip(padding=1)
        >>> augment(jax.random.key(0), jnp.ones((5, 4, 4, 3))).shape
        (5, 4, 4, 3)
    """

    padding: NonNegativeInt = 4
    flip: bool = True

    def __call__(
        self, key: Array, images: Num[Array | np.ndarray, "n height width channels"]
    ) -> Num[Array, "n height width channels"]:
        """Crop and flip each image independently.

        Args:
            key: JAX random key.
            images: Shape (n, height, width, channels), concrete or traced.

        Raises:
            InputError: If the images do not have four axes.
        """
        shape = jnp.shape(images)
        require(
            len(shape) == 4,
            f"images has shape {shape}",
            argument="images",
            value=shape,
            remedy="pass images of shape (samples, height, width, channels)",
        )
        return _cropped_and_flipped(self, key, images)


@functools.partial(jit, static_argnums=0)
def _cropped_and_flipped(augment: CropAndFlip, key: Array, images: Array) -> Array:
    place, side = jax.random.split(key)
    around, image_shape = augment.padding, images.shape[1:]
    if around:
        # Explicit types make the draws the same in single and double precision.
        corners = jax.random.randint(place, (len(images), 2), 0, 2 * around + 1, jnp.int32)
        framed = jnp.pad(images, ((0, 0), (around, around), (around, around), (0, 0)))
        zero = jnp.int32(0)
        images = jax.vmap(
            lambda image, corner: jax.lax.dynamic_slice(image, (corner[0], corner[1], zero), image_shape)
        )(framed, corners)
    if augment.flip:
        mirrored = jax.random.bernoulli(side, jnp.float32(0.5), (len(images), 1, 1, 1))
        images = jnp.where(mirrored, images[:, :, ::-1], images)
    return images
