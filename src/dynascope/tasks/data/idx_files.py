"""Images and labels in IDX files, the format of MNIST and its relatives."""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from dynascope.errors import InputError
from dynascope.validation import require

__all__ = ["read_idx"]

_GZIP = b"\x1f\x8b"


def read_idx(path: Path, allow: Callable[[int, str], None]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Read one file of images, compressed or not, and the labels in the file of the same name beside it.

    Args:
        path: The file of images. In the name of the file of labels, "labels" and "idx1" replace "images" and "idx3".
        allow: Raises `InputError` if this many bytes of the named file exceed the memory limit.

    Yields:
        The name of the file, pixels (n, height, width, 1) and labels (n,).

    Raises:
        InputError: A file is missing or damaged, or the numbers of images and labels differ.
    """
    labels_path = _labels_beside(path)
    pixels, labels = _read(path, 3, "images", allow), _read(labels_path, 1, "labels", allow)
    require(
        len(pixels) == len(labels),
        f"{path.name} has {len(pixels)} images and {labels_path.name} has {len(labels)} labels",
        argument="path",
        value=(len(pixels), len(labels)),
        remedy="give the two files of the same part",
    )
    yield path.name, pixels[..., None], labels


def _labels_beside(path: Path) -> Path:
    stem = re.sub("images", "labels", re.sub("idx3", "idx1", path.name, flags=re.IGNORECASE), flags=re.IGNORECASE)
    plain = re.sub(r"\.gz$", "", stem, flags=re.IGNORECASE)
    for name in (stem, plain, f"{plain}.gz"):
        if path.with_name(name).is_file():
            return path.with_name(name)
    raise InputError(
        f"there is no file {stem} beside {path.name}",
        argument="path",
        value=str(path.with_name(stem)),
        remedy="put the labels there",
    )


def _read(path: Path, axes: int, what: str, allow: Callable[[int, str], None]) -> np.ndarray:
    """The array of unsigned bytes in a file: a magic number, the length of each axis, and the values."""
    magic = bytes((0, 0, 8, axes))
    with path.open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        stream = gzip.GzipFile(fileobj=file) if packed else file
        try:
            head = stream.read(4 * (1 + axes))
            require(
                len(head) == 4 * (1 + axes) and head[:4] == magic,
                f"{path.name} begins with {head[:4].hex() or 'nothing'} instead of {magic.hex()}",
                argument="path",
                value=head[:4].hex(),
                remedy=f"give an IDX file of {what}",
            )
            shape = np.frombuffer(head, ">u4", offset=4).tolist()
            size = math.prod(shape)
            allow(size, path.name)
            data = stream.read(size)
            goes_on = stream.read(1) != b""
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(
                f"{path.name} cannot be decompressed ({error})",
                argument="path",
                value=str(path),
                remedy="download it again",
            ) from None
    require(
        len(data) == size > 0 and not goes_on,
        f"{path.name} states the shape {tuple(shape)} and holds {'more than ' * goes_on}{len(data)} bytes",
        argument="path",
        value=len(data),
        remedy="download it again" if size else f"give a file with {what} in it",
    )
    return np.frombuffer(data, np.uint8).reshape(shape)
