"""Images that a study is told by a name: the handwritten digits, or files."""

from __future__ import annotations

import dataclasses

import numpy as np

from dynascope.tasks.data.digits import digits
from dynascope.tasks.data.read_images import read_images
from dynascope.tasks.labelled import Labelled

__all__ = ["image_shape", "named_images"]


def named_images(data: str, samples: int, *, seed: int) -> Labelled:
    """The first handwritten digits, or as many images of files as are asked for, standardised, in double precision.

    Args:
        data: "digits", or the path of labelled images.
        samples: Their number, of digits at most 1797.
        seed: Seed by which images of files are drawn.

    Raises:
        InputError: Files that are no labelled images, or too few of them.

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
    """Height, width and number of colours, of rows of pixels as of a square without colours."""
    shape = images.inputs.shape[1:]
    side = round(shape[0] ** 0.5)
    return (shape[0], shape[1], shape[2]) if len(shape) == 3 else (side, side, 1)
