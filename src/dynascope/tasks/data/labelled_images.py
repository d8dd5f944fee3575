"""Labelled images for training and testing: handwritten digits, or images from your files."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from annotated_types import Ge

from dynascope.tasks.data.digits import digits
from dynascope.tasks.data.read_images import read_images
from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import Seed

__all__ = ["LabelledImages", "labelled_images"]

_DIGITS = (8, 8, 1)


class LabelledImages(NamedTuple):
    """Images of float32 with labels, for training and for testing.

    Attributes:
        inputs: Shape (n, height, width, channels).
        labels: Shape (n,).
        test_inputs: Shape (m, height, width, channels).
        test_labels: Shape (m,).
        classes: Number of classes.
        name: Name of the data.
        description: Processing steps, one sentence each.
    """

    inputs: np.ndarray
    labels: np.ndarray
    test_inputs: np.ndarray
    test_labels: np.ndarray
    classes: int
    name: str
    description: tuple[str, ...]

    def attributes(self) -> dict[str, Any]:
        """Attributes for the record of a run on these images."""
        return {"task": self.name, "description": list(self.description), "samples": len(self.inputs)}


@checked
def labelled_images(
    data: str, samples: Annotated[int, Ge(2)], test_samples: Annotated[int, Ge(2)], seed: Seed
) -> LabelledImages:
    """Handwritten digits, or the user's images; those without a test part are split.

    Args:
        data: "digits", or the path of images that `tasks.read_images` reads.
        samples: Number of training images.
        test_samples: Largest number of test images.
        seed: Seed of the draw.

    Raises:
        InputError: There are not that many images, or none at the path.
    """
    if data == "digits":
        task, test = digits(), None
        pixels, labels = task.inputs.reshape(-1, *_DIGITS), task.targets.argmax(axis=1)
        name, description, classes = task.name, task.description, task.output_dimension
    else:
        images = read_images(data).scaled("standardised")
        pixels, labels, test = images.pixels, images.labels, images.test
        name, description, classes = images.name, images.description, len(images.class_names)
    most = len(pixels) - 2 * (test is None)
    problem = f"samples is {samples} and there are {len(pixels)} images"
    remedy = f"choose at most {most}" + (", so that some are left for testing" if test is None else "")
    require(samples <= most, problem, argument="samples", value=samples, remedy=remedy)
    draw = np.random.default_rng(seed)
    order = draw.permutation(len(pixels))
    kept, rest = order[:samples], order[samples:]
    test_pixels, test_labels = pixels, labels
    if test is not None:
        test_pixels, test_labels, rest = test.pixels, test.labels, draw.permutation(len(test.pixels))
    rest = rest[:test_samples]
    sentence = f"{samples} images are trained on and {len(rest)} others are tested on, drawn with the seed {seed}."
    return LabelledImages(
        np.asarray(pixels[kept], np.float32),
        labels[kept],
        np.asarray(test_pixels[rest], np.float32),
        test_labels[rest],
        classes,
        name,
        (*description, sentence),
    )
