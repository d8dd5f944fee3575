"""Inputs x and targets y from NumPy files, without unpickling."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from dynascope.errors import InputError
from dynascope.tasks.data.packed_arrays import read_archive, read_array
from dynascope.validation import require, shown_error

__all__ = ["read_arrays"]

_Contents = TypeVar("_Contents")


def read_arrays(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read x and y from an `.npz` archive or from a pair of `.npy` files.

    Args:
        path: The archive, or the file of the inputs, named x.npy or NAME-x.npy, next to the file of the targets.

    Returns:
        x of shape (n,), (n, d) or (n, height, width), and y of shape (n,) or (n, c): numbers, booleans or text.

    Raises:
        InputError: If a file is damaged or exceeds the memory limit, if an array is missing or has an invalid type or
            shape, or if x and y have different numbers of samples.
    """
    check = partial(require, argument="path", value=str(path))
    x, y = _read_npz(path) if path.suffix.lower() == ".npz" else _read_npy_pair(path)
    for name, array, most in (("x", x, 3), ("y", y, 2)):
        remedy = "save real numbers" if name == "x" else "save real numbers, booleans or text"
        problem = f"the array {name} in {path.name} holds values of type {array.dtype}"
        check(array.dtype.kind in "biufSU", problem, remedy=remedy)
        remedy = "save an array of shape (samples, columns)" + (" or (samples, height, width)" if name == "x" else "")
        problem = f"the array {name} in {path.name} has shape {array.shape}"
        check(1 <= array.ndim <= most and array.size > 0, problem, remedy=remedy)
    problem = f"x and y in {path.name} have {len(x)} and {len(y)} samples"
    check(len(x) == len(y), problem, remedy="give one target for each sample")
    return _native(x), _native(y)


def _read_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    check = partial(require, argument="path", value=str(path), remedy="write the file with numpy.savez(path, x=…, y=…)")
    check(zipfile.is_zipfile(path), f"{path.name} is not an .npz archive")
    arrays, names = _undamaged(path, lambda file: read_archive(file, ("x", "y")))
    found = ", ".join(map(repr, names)) or "none"
    for name in ("x", "y"):
        check(name in arrays, f"{path.name} has no array {name!r} (it has {found})")
    return arrays["x"], arrays["y"]


def _read_npy_pair(path: Path) -> tuple[np.ndarray, np.ndarray]:
    check = partial(require, argument="path", value=str(path))
    problem = f"{path.name} holds a single array, but inputs and targets are required"
    remedy = "save NAME-x.npy and NAME-y.npy, and give the path of the first file"
    check(re.fullmatch(r"(.*[-_])?x", path.stem), problem, remedy=remedy)
    sibling = path.with_name(f"{path.stem[:-1]}y{path.suffix}")
    check(
        sibling.is_file(),
        f"there is no file {sibling.name} next to {path.name}",
        remedy="save the targets under this name",
    )
    return _undamaged(path, read_array), _undamaged(sibling, read_array)


def _undamaged(path: Path, read: Callable[[Path], _Contents]) -> _Contents:
    try:
        return read(path)
    except InputError:
        raise
    except Exception as error:  # damaged files raise a dozen types, most of them undocumented
        problem, remedy = (
            f"{path.name} cannot be read ({shown_error(error)})",
            "save it again as arrays of numbers or text",
        )
        raise InputError(problem, argument="path", value=str(path), remedy=remedy) from None


def _native(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8", "replace")
    return array.astype(array.dtype.newbyteorder("="), copy=False)
