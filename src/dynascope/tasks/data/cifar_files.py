"""Images, labels and class names from the binary version of CIFAR-10 and CIFAR-100."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from dynascope.errors import InputError
from dynascope.validation import require

__all__ = ["cifar_names", "read_cifar"]


def read_cifar(
    path: Path, allow: Callable[[int, str], None], *, label_bytes: int, label: int
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Read one binary file, in which each record holds one or two labels and a 32 × 32 RGB image.

    Args:
        path: The file.
        allow: Function of a size in bytes and a file name that raises `InputError` if the size exceeds the memory
            limit.
        label_bytes: Number of labels in a record: 1 in CIFAR-10, 2 (coarse and fine) in CIFAR-100.
        label: Index of the label to read, from 0.

    Yields:
        The name of the file, pixels (n, 32, 32, 3) and labels (n,).

    Raises:
        InputError: If the file is empty or ends within a record.
    """
    record = np.dtype([("labels", np.uint8, (label_bytes,)), ("channels", np.uint8, (3, 32, 32))])
    size = path.stat().st_size
    allow(size, path.name)
    problem = f"{path.name} holds {size} bytes, which is not a whole number of images of {record.itemsize} bytes"
    remedy = "download the binary version of CIFAR again"
    require(size > 0 and size % record.itemsize == 0, problem, argument="path", value=str(path), remedy=remedy)
    records = np.fromfile(path, record)
    yield path.name, np.ascontiguousarray(np.moveaxis(records["channels"], 1, -1)), records["labels"][:, label]


def cifar_names(path: Path, expected: int) -> tuple[str, ...]:
    """Read class names from a text file with one name per line; if the file is missing, use the class numbers.

    Raises:
        InputError: If the file is not text, or if the number of names differs from `expected`.
    """
    if not path.is_file():
        return tuple(str(label) for label in range(expected))
    try:
        names = tuple(filter(None, map(str.strip, path.read_text("utf-8").splitlines())))
    except UnicodeDecodeError:
        problem = f"{path.name} is not text"
        raise InputError(problem, argument="path", value=str(path), remedy="download this file again") from None
    problem = f"{path.name} has {len(names)} names for {expected} classes"
    remedy = "download this file again, or remove it to number the classes"
    require(len(names) == expected, problem, argument="path", value=str(path), remedy=remedy)
    return names
