"""Labelled images for training and testing: handwritten digits or user images."""

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
    """Training and test images in float32 with their labels.

    Attributes:
        inputs: Shape (n, height, width, channels).
        labels: Shape (n,).
        test_inputs: Shape (m, height, width, channels).
        test_labels: Shape (m,).
        classes: Number of classes.
        name: Name of the data.
        description: Sentences about the images and how they were drawn.
        scaling: Sentences about the scaling of the pixels.
    """

    inputs: np.ndarray
    labels: np.ndarray
    test_inputs: np.ndarray
    test_labels: np.ndarray
    classes: int
    name: str
    description: tuple[str, ...]
    scaling: tuple[str, ...] = ()

    def attributes(self) -> dict[str, Any]:
        """Attributes that describe the images in records."""
        return {"task": self.name, "description": [*self.description, *self.scaling], "samples": len(self.inputs)}


@checked
def labelled_images(
    data: str, samples: Annotated[int, Ge(2)], test_samples: Annotated[int, Ge(2)], seed: Seed
) -> LabelledImages:
    """Load handwritten digits or user images, and split off a test part if there is none.

    Args:
        data: "digits", or a path for `tasks.read_images`.
        samples: Number of training images, at least 2.
        test_samples: Maximum number of test images, at least 2.
        seed: Seed of the draw.

    Raises:
        InputError: If the path has no images, or fewer images than required.
    """
    if data == "digits":
        task, test = digits(), None
        pixels, labels = task.inputs.reshape(-1, *_DIGITS), task.targets.argmax(axis=1)
        name, classes = task.name, task.output_dimension
        description = ("Handwritten digits of 8 × 8 pixels.",)
        scaling = (
            f"Pixels are divided by 16, and the mean of each pixel over all {len(pixels)} digits is subtracted.",
        )
    else:
        images = read_images(data)
        description = images.description
        images = images.scaled("standardised")
        pixels, labels, test = images.pixels, images.labels, images.test
        name, classes = images.name, len(images.class_names)
        scaling = images.description[len(description) :]
    most = len(pixels) - 2 * (test is None)
    problem = f"samples is {samples}, but there are {len(pixels)} images"
    remedy = f"choose at most {most}" + (", to leave some for testing" if test is None else "")
    require(samples <= most, problem, argument="samples", value=samples, remedy=remedy)
    draw = np.random.default_rng(seed)
    order = draw.permutation(len(pixels))
    kept, rest = order[:samples], order[samples:]
    test_pixels, test_labels = pixels, labels
    if test is not None:
        test_pixels, test_labels, rest = test.pixels, test.labels, draw.permutation(len(test.pixels))
    rest = rest[:test_samples]
    counts = np.bincount(labels[kept], minlength=classes)
    sentences = (
        f"{samples} training and {len(rest)} test images were drawn at random with seed {seed}.",
        f"There are {classes} classes, with {counts.min()} to {counts.max()} training images in each.",
    )
    return LabelledImages(
        np.asarray(pixels[kept], np.float32),
        labels[kept],
        np.asarray(test_pixels[rest], np.float32),
        test_labels[rest],
        classes,
        name,
        (*description, *sentences),
        scaling,
    )
