"""The formats of labelled images that are read, and the file names by which each is recognised."""

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
        source: Its name, as descriptions and messages state it.
        train: Pattern of the names of training files, whatever their case.
        test: Pattern of the names of test files.
        read: Decodes one file: yields names, pixels (n, height, width, channels) and labels (n,), and calls its second
            argument with the size and the name before it unpacks anything.
        names: Reads the class names from a folder; without it, every label that occurs is a class.
        one_file: Whether a part with several files is an error.
        new_classes: Whether classes may occur in the test part only.
    """

    source: str
    train: str
    test: str
    read: Callable[[Path, Callable[[int, str], None]], Iterator[tuple[str, np.ndarray, np.ndarray]]]
    names: Callable[[Path], tuple[str, ...]] | None = None
    one_file: bool = False
    new_classes: bool = True

    def parts(self, paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
        """The training and the test files among some paths."""

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
PICKLED = ("data_batch_1", "test_batch", "train", "test")  # the version of CIFAR for Python
