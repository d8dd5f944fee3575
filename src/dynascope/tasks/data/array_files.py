"""Files of arrays: inputs x and targets y, never unpickled."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from dynascope.errors import InputError
from dynascope.tasks.data.packed_arrays import read_archive, read_array
from dynascope.validation import require, shown_error

__all__ = ["read_arrays"]

_Contents = TypeVar("_Contents")


def read_arrays(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read x and y from an `.npz` archive, or from a pair of `.npy` files given the one of the inputs.

    Returns:
        x of shape (n,), (n, d) or (n, height, width) and y of shape (n,) or (n, c), of numbers, truth values or text.

    Raises:
        InputError: A file that is damaged or larger than may be unpacked, arrays that are missing, hold other values
            or do not fit together.
    """
    x, y = _read_npz(path) if path.suffix.lower() == ".npz" else _read_npy_pair(path)
    for name, array, dimensions in (("x", x, (1, 2, 3)), ("y", y, (1, 2))):
        require(
            array.dtype.kind in "biufSU",
            f"the array {name} in {path.name} holds values of type {array.dtype}",
            argument="path",
            value=str(array.dtype),
            remedy="save real numbers" if name == "x" else "save real numbers, truth values or text",
        )
        require(
            array.ndim in dimensions and array.size > 0,
            f"the array {name} in {path.name} has shape {array.shape}",
            argument="path",
            value=array.shape,
            remedy="save it as (samples, columns)" + (" or (samples, height, width)" if name == "x" else ""),
        )
    require(
        len(x) == len(y),
        f"x has {len(x)} samples and y has {len(y)} in {path.name}",
        argument="path",
        value=(len(x), len(y)),
        remedy="give one target for each sample",
    )
    return _native(x), _native(y)


def _read_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    require(
        zipfile.is_zipfile(path),
        f"{path.name} is not an .npz archive",
        argument="path",
        value=str(path),
        remedy="write it with numpy.savez(path, x=…, y=…)",
    )

    arrays, names = _undamaged(path, lambda file: read_archive(file, ("x", "y")))
    for name in ("x", "y"):
        require(
            name in arrays,
            f"{path.name} has no array {name!r} (it has {', '.join(map(repr, names)) or 'none'})",
            argument="path",
            value=names,
            remedy="write it with numpy.savez(path, x=…, y=…)",
        )
    return arrays["x"], arrays["y"]


def _read_npy_pair(path: Path) -> tuple[np.ndarray, np.ndarray]:
    require(
        re.fullmatch(r"(.*[-_])?x", path.stem) is not None,
        f"{path.name} is one array where inputs and targets are needed",
        argument="path",
        value=str(path),
        remedy="name the two NAME-x.npy and NAME-y.npy and give the path of the first",
    )
    sibling = path.with_name(f"{path.stem[:-1]}y{path.suffix}")
    require(
        sibling.is_file(),
        f"there is no file {sibling.name} beside {path.name}",
        argument="path",
        value=str(sibling),
        remedy="save the targets there",
    )

    return _undamaged(path, read_array), _undamaged(sibling, read_array)


def _undamaged(path: Path, read: Callable[[Path], _Contents]) -> _Contents:
    try:
        return read(path)
    except InputError:
        raise
    except Exception as error:  # damaged files raise a dozen types, most of them undocumented
        reason = shown_error(error)
        raise InputError(
            f"{path.name} cannot be read ({reason})",
            argument="path",
            value=str(path),
            remedy="write it again as arrays of numbers or text",
        ) from None


def _native(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8", "replace")
    return array.astype(array.dtype.newbyteorder("="), copy=False)
