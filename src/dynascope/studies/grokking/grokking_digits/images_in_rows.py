"""Images as rows of pixels, normalised to [0, 1] on the training set."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dynascope.tasks.data.labelled_images import LabelledImages
from dynascope.validation import require

__all__ = ["ImagesInRows", "images_in_rows"]


class ImagesInRows(NamedTuple):
    """Flattened images with one-hot classes, and the indices of pixels that are constant over all training images.

    Attributes:
        inputs: Shape (n, pixels).
        targets: Shape (n, classes).
        test_inputs: Shape (m, pixels).
        test_targets: Shape (m, classes).
        blank: Shape (blank pixels,).
        name: Name of the data.
        description: Preprocessing steps, one sentence each.
    """

    inputs: np.ndarray
    targets: np.ndarray
    test_inputs: np.ndarray
    test_targets: np.ndarray
    blank: np.ndarray
    name: str
    description: tuple[str, ...]

    def attributes(self) -> dict[str, Any]:
        """Attributes for the record of a run on these images."""
        return {"task": self.name, "description": list(self.description), "samples": len(self.inputs)}


def images_in_rows(data: LabelledImages) -> ImagesInRows:
    """Subtract the smallest training value of each pixel and divide by the largest result; blank pixels become zero.

    Args:
        data: The images.

    Raises:
        InputError: All training images are the same.
    """
    inputs, test = (each.reshape(len(each), -1) for each in (data.inputs, data.test_inputs))
    least = inputs.min(axis=0)
    largest, one_hot = (inputs - least).max(), np.eye(data.classes, dtype=np.float32)
    sentence = (
        "The smallest training value of each pixel is subtracted, and all pixels are divided by the largest result, so "
        "that training pixels range from 0 to 1."
    )
    # With one channel, this undoes any earlier scaling.
    scaling = (sentence,) if data.inputs.shape[-1] == 1 else (*data.scaling, f"Then: {sentence}")
    problem = f"the training images of data {data.name} are identical"
    require(largest > 0, problem, argument="data", value=data.name, remedy="provide images that differ")
    return ImagesInRows(
        (inputs - least) / largest,
        one_hot[data.labels],
        (test - least) / largest,
        one_hot[data.test_labels],
        np.flatnonzero(np.ptp(inputs, axis=0) == 0),
        data.name,
        (*data.description, *scaling),
    )
