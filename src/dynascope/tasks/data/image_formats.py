"""Supported formats of labelled images, with the file names that identify them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dynascope.tasks.data.cifar_files import cifar_names, read_cifar
from dynascope.tasks.data.idx_files import read_idx
from dynascope.tasks.data.image_folders import read_image_folders

__all__ = ["COARSE", "FILES", "FOLDERS", "PICKLED", "ImageFormat"]


class ImageFormat(NamedTuple):
    """One format of labelled images.

    Attributes:
        source: Name of the format in descriptions and messages.
        train: Pattern for the names of training files, case-insensitive.
        test: Pattern for the names of test files, case-insensitive.
        read: Function that decodes one file and yields names, pixels (n, height, width, channels) and labels (n,).
            Before it decompresses a file, it calls its second argument with the size and name of the file.
        names: Function that reads the class names from a folder. If None, the classes are the labels that occur.
        one_file: Whether several files in one part are an error.
        new_classes: Whether the test part can have classes that do not occur in the training part.
    """

    source: str
    train: str
    test: str
    read: Callable[[Path, Callable[[int, str], None]], Iterator[tuple[str, np.ndarray, np.ndarray]]]
    names: Callable[[Path], tuple[str, ...]] | None = None
    one_file: bool = False
    new_classes: bool = True

    def parts(self, paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
        """Select the training files and the test files from a list of paths."""

        def named(pattern: str) -> list[Path]:
            return [each for each in paths if re.fullmatch(pattern, each.name, re.IGNORECASE)]

        return named(self.train), named(self.test)


def _cifar(classes: int, file: str, train: str, test: str, **labels: Any) -> ImageFormat:
    source = f"the binary files of CIFAR-{10 if classes == 10 else 100}"
    return ImageFormat(
        source, train, test, partial(read_cifar, **labels), lambda folder: cifar_names(folder / file, classes)
    )


_IDX, _IDX_TEST = r".*images([-_.]?idx3)?[-_.]ubyte(\.gz)?", r"(.*[-_.])?(t10k|test)[-_.]"
_CIFAR_100 = {"train": r"train\.bin", "test": r"test\.bin", "label_bytes": 2}

FILES = (
    ImageFormat("IDX files", f"(?!{_IDX_TEST}){_IDX}", f"(?={_IDX_TEST}){_IDX}", read_idx, one_file=True),
    _cifar(10, "batches.meta.txt", r"data_batch_\d+\.bin", r"test_batch\.bin", label_bytes=1, label=0),
    _cifar(100, "fine_label_names.txt", **_CIFAR_100, label=1),
)
COARSE = (_cifar(20, "coarse_label_names.txt", **_CIFAR_100, label=0),)
FOLDERS = ImageFormat(
    "folders, one for each class",
    "train|training",
    "test|testing|val|valid|validation",
    read_image_folders,
    new_classes=False,
)
PICKLED = ("data_batch_1", "test_batch", "train", "test")  # file names of the Python version of CIFAR
