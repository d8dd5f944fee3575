"""Images selected by name: the handwritten digits, or a path."""

from __future__ import annotations

import dataclasses

import numpy as np

from dynascope.tasks.data.digits import digits
from dynascope.tasks.data.read_images import read_images
from dynascope.tasks.labelled import Labelled

__all__ = ["image_shape", "named_images"]


def named_images(data: str, samples: int, *, seed: int) -> Labelled:
    """Load the first handwritten digits, or a random subset of user images, standardised, in double precision.

    Args:
        data: "digits", or the path of labelled images.
        samples: Number of images, at most 1797 for digits.
        seed: Seed of the draw from user images.

    Raises:
        InputError: If the path has no labelled images, or fewer than `samples`.

    Example:
        >>> found = named_images("digits", 50, seed=0)
        >>> found.inputs.shape, found.name, image_shape(found)
        ((50, 64), 'digits', (8, 8, 1))
    """
    if data != "digits":
        images = read_images(data).subset(samples, seed=seed).scaled("standardised").labelled()
        return dataclasses.replace(images, inputs=np.asarray(images.inputs, np.float64))
    whole = digits()
    inputs, labels = whole.inputs[:samples], whole.targets.argmax(axis=1)[:samples]
    return Labelled(inputs, labels, tuple(map(str, range(whole.targets.shape[1]))), name="digits")


def image_shape(images: Labelled) -> tuple[int, int, int]:
    """Height, width and number of channels; flat inputs are treated as square images with one channel."""
    shape = images.inputs.shape[1:]
    side = round(shape[0] ** 0.5)
    return (shape[0], shape[1], shape[2]) if len(shape) == 3 else (side, side, 1)
