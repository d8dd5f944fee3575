"""Images, labels and class names in the binary version of CIFAR-10 and CIFAR-100."""

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
    """Read one file of records, each of one or two labels and the three channels of 32 × 32 pixels.

    Args:
        path: The file.
        allow: Raises `InputError` if this many bytes of the named file exceed the memory limit.
        label_bytes: Number of labels in a record: 1 in CIFAR-10, 2 (coarse and fine) in CIFAR-100.
        label: Which of them is read, counted from 0.

    Yields:
        The name of the file, pixels (n, 32, 32, 3) and labels (n,).

    Raises:
        InputError: The file is empty or ends within a record.
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
    """Read the class names from a text file, one a line; without the file, classes are named by their numbers.

    Raises:
        InputError: The file is not text or has another number of names.
    """
    if not path.is_file():
        return tuple(str(label) for label in range(expected))
    try:
        names = tuple(filter(None, map(str.strip, path.read_text("utf-8").splitlines())))
    except UnicodeDecodeError:
        problem = f"{path.name} is not text"
        raise InputError(problem, argument="path", value=str(path), remedy="download it again") from None
    problem = f"{path.name} has {len(names)} names for {expected} classes"
    remedy = "download it again, or remove it to number the classes"
    require(len(names) == expected, problem, argument="path", value=str(path), remedy=remedy)
    return names
