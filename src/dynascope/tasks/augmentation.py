"""Random crops and mirror images, which classifiers of photographs are trained on."""

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
    """Random crops of a zero-padded frame, and mirror images with probability one half.

    Each image x of h × w pixels gets a frame of p zeros on every side, X of (h + 2p) × (w + 2p), of which a window of
    its own size is kept: z[i, j] = X[a + i, b + j], with a and b drawn evenly from 0, …, 2p. Then it is mirrored, left
    to right, or not: z[i, w − 1 − j]. All draws are independent.

    It is called inside or outside of `jax.jit` and is found again by its values; a key always gives the same images,
    whatever the precision of JAX.

    Attributes:
        padding: p, the zeros on every side; 0 for no crop.
        flip: Whether images are mirrored at random.

    Raises:
        InputError: A padding that is no integer from 0, or a flip that is neither true nor false.

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
        """The images, each cropped and mirrored on its own.

        Args:
            key: JAX random key.
            images: Shape (n, height, width, channels), known or traced.

        Raises:
            InputError: The images have another number of axes.
        """
        shape = jnp.shape(images)
        require(
            len(shape) == 4,
            f"images has shape {shape}",
            argument="images",
            value=shape,
            remedy="pass images of shape (samples, height, width, channels), not flat ones",
        )
        return _cropped_and_flipped(self, key, images)


@functools.partial(jit, static_argnums=0)
def _cropped_and_flipped(augment: CropAndFlip, key: Array, images: Array) -> Array:
    place, side = jax.random.split(key)
    around, image_shape = augment.padding, images.shape[1:]
    if around:
        # Draws of named types are the same in single and in double precision.
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
