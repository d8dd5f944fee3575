"""Images and labels in IDX files, the format of MNIST and its relatives."""

from __future__ import annotations

import gzip
import math
import re
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import Int, UInt8

from dynascope.errors import InputError
from dynascope.validation import require, require_unpacked

__all__ = ["find_idx", "is_idx", "read_idx"]

_NAME = re.compile(r"(?P<part>.*)images(?P<format>[-_.]?idx3)?[-_.]ubyte(\.gz)?", re.IGNORECASE)
_TEST = re.compile(r"(.*[-_.])?(t10k|test)[-_.].*", re.IGNORECASE)
_IMAGES, _LABELS = 0x0803, 0x0801  # unsigned bytes along three axes, and along one
_GZIP = b"\x1f\x8b"


def is_idx(path: Path) -> bool:
    """Whether a file is called like one of images in this format, such as train-images-idx3-ubyte.gz."""
    return _NAME.fullmatch(path.name) is not None


def find_idx(folder: Path) -> tuple[Path | None, Path | None]:
    """The files of training and of test images in a folder, the latter called t10k-images-… or test-images-….

    Raises:
        InputError: There are several for one part.
    """
    parts: dict[bool, dict[str, Path]] = {False: {}, True: {}}
    for path in sorted(folder.iterdir()):
        if is_idx(path) and path.is_file():
            # Of a file and its compressed copy, the first in the alphabet is the file.
            part = parts[_TEST.fullmatch(path.name) is not None]
            part.setdefault(re.sub(r"\.gz$", "", path.name, flags=re.IGNORECASE), path)
    for found in parts.values():
        require(
            len(found) <= 1,
            f"{folder.name} has several files of images ({', '.join(found)})",
            argument="path",
            value=list(found),
            remedy="name one of them",
        )
    return next(iter(parts[False].values()), None), next(iter(parts[True].values()), None)


def read_idx(path: Path) -> tuple[UInt8[np.ndarray, "n height width 1"], Int[np.ndarray, " n"]]:
    """Read the images of one file and the labels of the file beside it.

    Args:
        path: The file of images, compressed with gzip or not; that of the labels is called the same with "labels" and
            "idx1" in the place of "images" and "idx3".

    Returns:
        Pixels of shape (n, height, width, 1) and the labels as they are in the file.

    Raises:
        InputError: A file is missing, has another magic number or another length than it says, or the two do not fit
            together.
    """
    labels_path = _labels_beside(path)
    pixels, labels = _read(path, _IMAGES, "images"), _read(labels_path, _LABELS, "labels")
    require(
        len(pixels) == len(labels),
        f"{path.name} has {len(pixels)} images and {labels_path.name} has {len(labels)} labels",
        argument="path",
        value=(len(pixels), len(labels)),
        remedy="give the two files of the same part",
    )
    return pixels[..., None], labels.astype(np.int64)


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


def _read(path: Path, magic: int, what: str) -> np.ndarray:
    axes = magic & 0xFF
    with path.open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        stream = gzip.GzipFile(fileobj=file) if packed else file
        try:
            head = stream.read(4 * (1 + axes))
            found = int.from_bytes(head[:4], "big")
            require(
                len(head) == 4 * (1 + axes) and found == magic,
                f"{path.name} begins with {head[:4].hex() or 'nothing'} instead of {magic:08x}",
                argument="path",
                value=found,
                remedy=f"give an IDX file of {what}",
            )
            shape = [int.from_bytes(head[4 * (1 + axis) : 4 * (2 + axis)], "big") for axis in range(axes)]
            size = math.prod(shape)
            require_unpacked(size, path.name, value=str(path))
            data = stream.read(size)
            goes_on = stream.read(1) != b""
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(
                f"{path.name} cannot be decompressed ({error})",
                argument="path",
                value=str(path),
                remedy="fetch it again",
            ) from None
    require(
        len(data) == size > 0 and not goes_on,
        f"{path.name} says that its shape is {tuple(shape)} and holds {'more than ' * goes_on}{len(data)} bytes",
        argument="path",
        value=len(data),
        remedy="fetch it again" if size else f"give a file with {what} in it",
    )
    return np.frombuffer(data, np.uint8).reshape(shape)
