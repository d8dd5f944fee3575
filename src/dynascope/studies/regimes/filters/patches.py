"""Patches of photographs, rotated by quarter turns, for training and testing."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from dynascope.tasks import read_images
from dynascope.tasks.data.images import Images
from dynascope.validation import require

__all__ = ["TURNS", "RotatedPatches", "photographs", "rotated_patches", "windows"]

TURNS = 4
_PHOTOGRAPHS = ("china.jpg", "flower.jpg")
_BANDS, _TEST_BANDS = 8, (2, 6)  # vertical bands of a photograph, and those for testing
_TRAINING_PART = 0.75  # of the images of a user without a test part
_CONTRAST = 0.05  # smallest standard deviation of a patch, relative to the brightest pixel
_CANDIDATES = 20  # patches drawn at most for each patch that is kept


class RotatedPatches(NamedTuple):
    """Standardised patches in all four orientations; the label counts the quarter turns.

    Attributes:
        inputs: Training patches, shape (n, side, side).
        labels: Number of quarter turns of each training patch, shape (n,).
        test_inputs: Patches from other parts of the photographs, or from other images.
        test_labels: Number of quarter turns of each test patch.
    """

    inputs: np.ndarray
    labels: np.ndarray
    test_inputs: np.ndarray
    test_labels: np.ndarray


def rotated_patches(data: str, patches: int, test_patches: int, *, side: int, seed: int) -> RotatedPatches:
    """Draw patches at random positions, standardise them, and rotate each by zero to three quarter turns.

    Training and test patches never overlap: they come from different vertical bands of each photograph, or from
    different images. Patches with little contrast are not used.

    Args:
        data: "photographs", or a path for `tasks.read_images`; the labels of these images are not used.
        patches: Number of training patches before rotation.
        test_patches: Number of test patches before rotation.
        side: Side of a patch in pixels.
        seed: Seed of the positions.

    Raises:
        InputError: If the path has no images, or if there are too few images of sufficient size and contrast.

    Example:
        >>> found = rotated_patches("photographs", 6, 3, side=32, seed=0)
        >>> found.inputs.shape, found.labels[:4].tolist()
        ((24, 32, 32), [0, 1, 2, 3])
        >>> bool((found.inputs[1] == np.rot90(found.inputs[0])).all())
        True
    """
    if data == "photographs":
        bands = [np.array_split(image, _BANDS, axis=1) for image in photographs()]
        parts = tuple(
            [image[k] for image in bands for k in range(_BANDS) if (k in _TEST_BANDS) == test] for test in (False, True)
        )
    else:
        parts = _user_images(read_images(data), side, data, seed)
    draw = np.random.default_rng([seed, 1])
    drawn = [
        _patches(part, number, side, draw, data) for part, number in zip(parts, (patches, test_patches), strict=True)
    ]
    (inputs, labels), (test_inputs, test_labels) = map(_rotated, drawn)
    return RotatedPatches(inputs, labels, test_inputs, test_labels)


def photographs() -> list[np.ndarray]:
    """The two photographs of scikit-learn in grey, with values from zero to one."""
    found = find_spec("sklearn")
    assert found is not None
    assert found.submodule_search_locations
    # Read directly from the files, because importing scikit-learn is slow.
    folder = Path(found.submodule_search_locations[0], "datasets", "images")
    return [
        np.asarray(Image.open(folder / name).convert("RGB"), np.float32).mean(axis=2) / 255 for name in _PHOTOGRAPHS
    ]


def windows(images: np.ndarray, kernel: int, stride: int) -> np.ndarray:
    """The windows that a convolution without padding sees, as rows: shape (n, positions, kernel²).

    The first layer of a network is then a product of matrices, which is faster than a convolution on a CPU.
    """
    views = np.lib.stride_tricks.sliding_window_view(images, (kernel, kernel), axis=(1, 2))[:, ::stride, ::stride]
    return np.ascontiguousarray(views.reshape(len(images), -1, kernel * kernel))


def _user_images(images: Images, side: int, data: str, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Training and test images in grey; without a test part, some of the images are held out."""
    height, width = images.pixels.shape[1:3]
    problem = f"the images of data ({data}) have {height} × {width} pixels"
    require(min(height, width) >= side, problem, argument="data", value=data, remedy=f"use {side} × {side} or more")
    grey = images.pixels.mean(axis=3, dtype=np.float32) / 255
    if images.test is not None:
        return list(grey), list(images.test.pixels.mean(axis=3, dtype=np.float32) / 255)
    order = np.random.default_rng([seed, 2]).permutation(len(grey))
    cut = min(max(round(_TRAINING_PART * len(grey)), 1), len(grey) - 1)
    return list(grey[order[:cut]]), list(grey[order[cut:]])


def _patches(images: list[np.ndarray], number: int, side: int, draw: np.random.Generator, data: str) -> np.ndarray:
    """Draw standardised patches with sufficient contrast, shape (number, side, side)."""
    kept = []
    for _ in range(_CANDIDATES * number):
        image = images[draw.integers(len(images))]
        row, column = (draw.integers(size - side + 1) for size in image.shape)
        patch = image[row : row + side, column : column + side]
        deviation = patch.std()
        if deviation >= _CONTRAST:
            kept.append((patch - patch.mean()) / deviation)
        if len(kept) == number:
            break
    problem = f"the images of data ({data}) have too few patches with a contrast above {_CONTRAST:g}"
    require(len(kept) == number, problem, argument="data", value=data, remedy="use images with more contrast")
    return np.stack(kept).astype(np.float32)


def _rotated(patches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each patch in all four orientations, one after the other."""
    turned = np.stack([np.rot90(patches, turn, axes=(1, 2)) for turn in range(TURNS)], axis=1)
    return turned.reshape(-1, *patches.shape[1:]), np.tile(np.arange(TURNS), len(patches))
