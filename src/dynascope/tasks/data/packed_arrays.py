"""Safe reading of NumPy files: no unpickling, and a size check before decompression."""

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
    """Read the named arrays that an `.npz` archive contains, and list the names of all its arrays.

    Raises:
        InputError: If the arrays exceed the memory limit.
        ValueError: If an entry is not an array of numbers or text, or if its size differs from the size in its header.
        OSError: If the file cannot be read. Errors of `zipfile` are not converted.
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
    """Read the array in a `.npy` file.

    Raises:
        InputError: If the array exceeds the memory limit.
        ValueError: If the file is not an array of numbers or text, or if its size differs from the size in its header.
        OSError: If the file cannot be read.
    """
    size = path.stat().st_size
    require_unpacked(size, path.name, value=str(path))
    with path.open("rb") as stream:
        _check(stream, size, path.name)
        stream.seek(0)
        return np.lib.format.read_array(stream, allow_pickle=False)


def _check(stream: Any, size: int, name: str) -> None:
    """Raise `ValueError`, before allocating memory, if a stream is not an array or differs in size from its header."""
    start = stream.read(len(_MAGIC) + 2)
    if start[: len(_MAGIC)] != _MAGIC:
        raise ValueError(f"{name} is not a NumPy array")
    digits = 2 if start[len(_MAGIC)] == 1 else 4
    length = int.from_bytes(stream.read(digits), "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"{name} has a header of {length} bytes")
    header = ast.literal_eval(stream.read(length).decode("latin1" if digits == 2 else "utf-8"))
    kind = np.lib.format.descr_to_dtype(header["descr"])
    if kind.hasobject:
        raise ValueError(f"{name} is pickled; pickles are not read because they can run code")
    declared, actual = math.prod(header["shape"]) * kind.itemsize, size - len(start) - digits - length
    if declared != actual:
        raise ValueError(f"the header of {name} declares {declared} bytes, but the data have {actual}")
