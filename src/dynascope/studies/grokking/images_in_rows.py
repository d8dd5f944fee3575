"""Labelled images as rows of pixels from zero to one, and which pixels are blank in all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynascope.arguments import require
from dynascope.studies.features.feature_runs import LabelledImages

__all__ = ["ImagesInRows", "images_in_rows"]


class ImagesInRows(NamedTuple):
    """Pixels in rows, one-hot classes, and the numbers of the pixels that are blank in all training images.

    Attributes:
        inputs: Shape (n, pixels).
        targets: Shape (n, classes).
        test_inputs: Shape (m, pixels).
        test_targets: Shape (m, classes).
        blank: Shape (blank pixels,).
        name: Name of the data.
        description: What was done to them, one sentence each.
    """

    inputs: np.ndarray
    targets: np.ndarray
    test_inputs: np.ndarray
    test_targets: np.ndarray
    blank: np.ndarray
    name: str
    description: tuple[str, ...]


def images_in_rows(data: LabelledImages) -> ImagesInRows:
    """Each pixel less its least value in training, over the largest of all; those of a blank pixel are zero exactly.

    Args:
        data: The images.

    Raises:
        InputError: All training images are the same.
    """
    inputs, test = (each.reshape(len(each), -1) for each in (data.inputs, data.test_inputs))
    least = inputs.min(axis=0)
    largest, one_hot = (inputs - least).max(), np.eye(data.classes, dtype=np.float32)
    require(largest > 0, "all images are the same", argument="data", value=data.name, remedy="give others")
    return ImagesInRows(
        (inputs - least) / largest,
        one_hot[data.labels],
        (test - least) / largest,
        one_hot[data.test_labels],
        np.flatnonzero(np.ptp(inputs, axis=0) == 0),
        data.name,
        (*data.description, "Each pixel less its least value, over the largest of all."),
    )
