"""Images and labels in the binary version of CIFAR-10 and CIFAR-100."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int, UInt8

from dynascope.errors import InputError
from dynascope.validation import require, require_unpacked

__all__ = ["find_cifar", "read_cifar", "read_cifar_names"]

_PARTS = {
    10: (re.compile(r"data_batch_\d+\.bin"), re.compile(r"test_batch\.bin")),
    100: (re.compile(r"train\.bin"), re.compile(r"test\.bin")),
}
_PICKLED = ("data_batch_1", "test_batch", "train", "test")
_SIDE, _CHANNELS = 32, 3


def find_cifar(path: Path) -> tuple[int, list[Path], list[Path]] | None:
    """The number of classes, 10 or 100, and the files of training and test images; None if there are none.

    Args:
        path: A folder, or one of the files of images.

    Raises:
        InputError: Both data sets are there, or only the version for Python, which is pickled.
    """
    files = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
    found = {
        classes: tuple([each for each in files if name.fullmatch(each.name)] for name in names)
        for classes, names in _PARTS.items()
    }
    present = [classes for classes, parts in found.items() if any(parts)]
    if not present:
        require(
            not any(each.name in _PICKLED for each in files),
            f"{path} is the version of CIFAR for Python, whose files are pickled",
            argument="path",
            value=str(path),
            remedy="give the binary version, whose files end in .bin",
        )
        return None
    require(
        len(present) == 1,
        f"{path} has files of both CIFAR-10 and CIFAR-100",
        argument="path",
        value=present,
        remedy="put them into two folders",
    )
    train, test = found[present[0]]
    return present[0], train, test


def read_cifar(
    paths: Sequence[Path], classes: int, *, coarse: bool = False
) -> tuple[UInt8[np.ndarray, "n 32 32 3"], Int[np.ndarray, " n"]]:
    """Read the images of one part, in the order of the files.

    Args:
        paths: Its files.
        classes: 10, or 100 for records that begin with a coarse and a fine label.
        coarse: Give the coarse label of CIFAR-100, one of 20, instead of the fine one.

    Raises:
        InputError: A file is empty or ends within an image, or a label is outside its range.
    """
    parts = [_read(path, classes, coarse) for path in paths]
    return np.concatenate([pixels for pixels, _ in parts]), np.concatenate([labels for _, labels in parts])


def read_cifar_names(folder: Path, classes: int, *, coarse: bool = False) -> tuple[str, ...]:
    """The names of the classes, from the file beside the images; their numbers if it is not there.

    Raises:
        InputError: The file is not text or has another number of names.
    """
    expected = 20 if coarse else classes
    path = folder / ("batches.meta.txt" if classes == 10 else f"{'coarse' if coarse else 'fine'}_label_names.txt")
    if not path.is_file():
        return tuple(str(label) for label in range(expected))
    try:
        names = tuple(filter(None, map(str.strip, path.read_text("utf-8").splitlines())))
    except UnicodeDecodeError:
        raise InputError(
            f"{path.name} is not text", argument="path", value=str(path), remedy="fetch it again"
        ) from None
    require(
        len(names) == expected,
        f"{path.name} has {len(names)} names for {expected} classes",
        argument="path",
        value=len(names),
        remedy="fetch it again, or remove it to number the classes",
    )
    return names


def _read(path: Path, classes: int, coarse: bool) -> tuple[np.ndarray, np.ndarray]:
    require_unpacked(path.stat().st_size, path.name, value=str(path))
    data = np.fromfile(path, np.uint8)
    labels = 1 if classes == 10 else 2
    record = labels + _CHANNELS * _SIDE**2
    require(
        len(data) > 0 and len(data) % record == 0,
        f"{path.name} holds {len(data)} bytes, which is not a whole number of images of {record} bytes",
        argument="path",
        value=len(data),
        remedy=f"fetch the binary version of CIFAR-{classes} again",
    )
    rows = data.reshape(-1, record)
    label = rows[:, 0 if coarse else labels - 1].astype(np.int64)
    highest, allowed = int(label.max()), 20 if coarse else classes
    require(
        highest < allowed,
        f"{path.name} has the label {highest} where there are {allowed} classes",
        argument="path",
        value=highest,
        remedy=f"fetch the binary version of CIFAR-{classes} again",
    )
    # Stored channel by channel.
    pixels = rows[:, labels:].reshape(-1, _CHANNELS, _SIDE, _SIDE).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(pixels), label
