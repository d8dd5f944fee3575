"""The handwritten digits of scikit-learn, a classification task that requires no download."""

from __future__ import annotations

import dataclasses
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from dynascope.tasks.data.labels import one_hot
from dynascope.tasks.task import Task

__all__ = ["digits", "drawn_digits"]


def digits() -> Task:
    """The 1797 handwritten digits of 8 × 8 pixels in scikit-learn.

    Pixels are scaled to [0, 1], the ten classes are one-hot encoded, and inputs and targets are centred. Three of the
    64 pixels are zero in every image, so the second moment of the inputs has rank 61.

    Returns:
        Task with inputs (1797, 64) and targets (1797, 10).

    References:
        E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository (1998),
        https://doi.org/10.24432/C50P49; scikit-learn bundles its test set.

    Example:
        >>> task = digits()
        >>> task.inputs.shape, task.targets.shape, task.feature_names[19], task.target_names[0]
        ((1797, 64), (1797, 10), 'pixel 3,4', 'digit 0')
        >>> int(np.linalg.matrix_rank(task.input_moment))
        61
    """
    pixels, labels = _bundled()
    targets, names, encoded = one_hot(labels, "digit")
    return Task(
        pixels / 16,
        targets,
        name="digits",
        description=("1797 handwritten digits of 8 × 8 pixels.", "Pixels are scaled by 1/16.", encoded),
        image_shape=(8, 8),
        target_names=names,
    ).centred()


def drawn_digits(samples: int, draw: np.random.Generator) -> Task:
    """A random subset of the handwritten digits, centred again."""
    whole = digits()
    rows = np.sort(draw.permutation(whole.samples)[:samples])
    description = *whole.description, f"{samples} of the digits were drawn at random."
    chosen = {"inputs": whole.inputs[rows], "targets": whole.targets[rows], "description": description}
    return dataclasses.replace(whole, **chosen).centred()


def _bundled() -> tuple[np.ndarray, np.ndarray]:
    """Pixels and labels, read directly from the file because importing scikit-learn is slow."""
    found = find_spec("sklearn")
    for place in (found and found.submodule_search_locations) or ():
        file = Path(place, "datasets", "data", "digits.csv.gz")
        if file.is_file():
            table = np.loadtxt(file, delimiter=",")
            return table[:, :-1], table[:, -1].astype(int)
    from sklearn.datasets import load_digits  # in versions that store the file elsewhere

    pixels, labels = load_digits(return_X_y=True)
    return np.asarray(pixels), np.asarray(labels)
