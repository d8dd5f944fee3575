"""Images and labels from IDX files, the format of MNIST and related data sets."""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from dynascope.errors import InputError
from dynascope.validation import require

__all__ = ["read_idx"]


def read_idx(path: Path, allow: Callable[[int, str], None]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Read one file of images, compressed or not, and the file of labels in the same folder.

    Args:
        path: The file of images. The labels file has the same name, but with "labels" and "idx1" instead of "images"
            and "idx3".
        allow: Function of a size in bytes and a file name that raises `InputError` if the size exceeds the memory
            limit.

    Yields:
        The name of the file, pixels (n, height, width, 1) and labels (n,).

    Raises:
        InputError: If a file is missing or damaged, or if the numbers of images and labels differ.
    """
    check = partial(require, argument="path", value=str(path))
    name = re.sub("images", "labels", re.sub("idx3", "idx1", path.name, flags=re.IGNORECASE), flags=re.IGNORECASE)
    plain = re.sub(r"\.gz$", "", name, flags=re.IGNORECASE)
    beside = [path.with_name(each) for each in (name, plain, f"{plain}.gz") if path.with_name(each).is_file()]
    check(beside, f"there is no file {name} next to {path.name}", remedy="save the labels under this name")
    pixels, labels = _read(path, 3, "images", allow), _read(beside[0], 1, "labels", allow)
    problem = f"{path.name} has {len(pixels)} images, but {beside[0].name} has {len(labels)} labels"
    check(len(pixels) == len(labels), problem, remedy="use images and labels of the same part")
    yield path.name, pixels[..., None], labels


def _read(path: Path, axes: int, what: str, allow: Callable[[int, str], None]) -> np.ndarray:
    """Read an array of unsigned bytes: a magic number, the length of each axis, and the values."""
    check = partial(require, argument="path", value=str(path))
    magic = bytes((0, 0, 8, axes))
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        stream = gzip.GzipFile(fileobj=file) if packed else file
        try:
            head = stream.read(4 * (1 + axes))
            problem = f"{path.name} begins with {head[:4].hex() or 'nothing'} instead of {magic.hex()}"
            valid = len(head) == 4 * (1 + axes) and head[:4] == magic
            check(valid, problem, remedy=f"give an IDX file of {what}")
            shape = np.frombuffer(head, ">u4", offset=4).tolist()
            size = math.prod(shape)
            allow(size, path.name)
            data = stream.read(size)
            goes_on = stream.read(1) != b""
        except (OSError, EOFError, zlib.error) as error:
            problem = f"{path.name} cannot be decompressed ({error})"
            raise InputError(problem, argument="path", value=str(path), remedy="download this file again") from None
    problem = f"{path.name} declares shape {tuple(shape)}, but contains {'more than ' * goes_on}{len(data)} bytes"
    remedy = "download this file again" if size else f"give a file that contains {what}"
    check(len(data) == size > 0 and not goes_on, problem, remedy=remedy)
    return np.frombuffer(data, np.uint8).reshape(shape)
