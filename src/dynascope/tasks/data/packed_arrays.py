"""Arrays in files of NumPy, which are never unpickled, and of which nothing is unpacked that cannot fit."""

from __future__ import annotations

import ast
import math
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from dynascope.validation import require_unpacked

__all__ = ["read_archive", "read_array"]

_MAGIC, _LONGEST_HEADER = b"\x93NUMPY", 10_000


def read_archive(path: Path, names: Collection[str]) -> tuple[dict[str, np.ndarray], list[str]]:
    """Some arrays of an `.npz` archive, as far as they are there, and the names of all.

    Raises:
        InputError: They are larger than may be unpacked.
        ValueError: One is no array of numbers or text, or another size than it says.
        OSError: The file cannot be read; what the zip format raises of its own comes as it is.
    """
    with zipfile.ZipFile(path) as archive:
        there = [(entry, entry.filename.removesuffix(".npy")) for entry in archive.infolist()]
        wanted = [(entry, name) for entry, name in there if name in names]
        require_unpacked(sum(entry.file_size for entry, _ in wanted), path.name, value=str(path))
        for entry, _ in wanted:
            with archive.open(entry) as stream:
                _check(stream, entry.file_size, entry.filename)
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for _, name in wanted}, [name for _, name in there]


def read_array(path: Path) -> np.ndarray:
    """The array in a `.npy` file.

    Raises:
        InputError: It is larger than may be unpacked.
        ValueError: It is no array of numbers or text, or another size than it says.
        OSError: The file cannot be read.
    """
    size = path.stat().st_size
    require_unpacked(size, path.name, value=str(path))
    with path.open("rb") as stream:
        _check(stream, size, path.name)
        stream.seek(0)
        return np.lib.format.read_array(stream, allow_pickle=False)


def _check(stream: Any, held: int, name: str) -> None:
    """Refuse what is no array, or says another size than it has, before anything is made of that size."""
    start = stream.read(len(_MAGIC) + 2)
    if start[: len(_MAGIC)] != _MAGIC:
        raise ValueError(f"{name} is not an array of NumPy")
    digits = 2 if start[len(_MAGIC)] == 1 else 4
    length = int.from_bytes(stream.read(digits), "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"{name} has a header of {length} bytes")
    header = ast.literal_eval(stream.read(length).decode("latin1" if digits == 2 else "utf-8"))
    kind = np.lib.format.descr_to_dtype(header["descr"])
    if kind.hasobject:
        raise ValueError(f"{name} is pickled, and pickles are not read, as they can run code")
    says, has = math.prod(header["shape"]) * kind.itemsize, held - len(start) - digits - length
    if says != has:
        raise ValueError(f"{name} says that it has {says} bytes, and it has {has}")
