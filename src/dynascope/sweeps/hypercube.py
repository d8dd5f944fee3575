"""The store of a sweep: a zarr folder with one array for each stored name, readable by xarray while it grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr

from dynascope.results import describe
from dynascope.results.growing_layout import DIMENSIONS, ZARR_FORMAT
from dynascope.sweeps.measurements import CURVE, POINTS

__all__ = ["STATUSES", "Hypercube"]

STATUSES = ("waiting", "running", "done", "failed")
_TEXTS = {"status": "U7", "reason": "U200"}  # lengths of texts in every sweep
_TEXT, _LIST_CHUNK = "U40", 64
_NAMES = {
    "status": ("state of the cell", "1"),
    "reason": ("why the cell failed", "1"),
    "seconds": ("duration of the cell", "s"),
    "verdict": ("verdict", "1"),
}


class Hypercube:
    """Arrays over the grid of a sweep.

    Every array has the axes of the sweep first, and at most one further dimension: the points of a curve, or the
    positions in a list, which is as long as the longest list so far. Numbers of cells that are not done are NaN, and
    texts are empty.

    Attributes:
        path: The folder.
        axes: The values of each axis of the sweep.
        chunk: The number of cells of a chunk along each axis.
    """

    def __init__(self, path: Path, axes: Mapping[str, Sequence[Any]], chunk: Sequence[int]):
        self.path, self.axes, self.chunk = path, dict(axes), tuple(chunk)
        self._group = zarr.open_group(path, mode="a", zarr_format=ZARR_FORMAT, use_consolidated=False)
        self._arrays: dict[str, Any] = {name: self._group[name] for name in self._group.array_keys()}
        if CURVE not in self._arrays:
            self._create(CURVE, (CURVE,), np.linspace(0, 1, POINTS), (POINTS,))
        for name, values in self.axes.items():
            self._create(name, (name,), np.asarray(values), (max(len(values), 1),), overwrite=True)
        for name in ("status", "reason"):
            self._ensure(name, (), "", 0)
        self._extend()
        self._consolidate()

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values along each axis."""
        return tuple(map(len, self.axes.values()))

    def write(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Write finished cells; the status is written last."""
        if not entries:
            return
        known, lengths = len(self._arrays), {name: array.shape for name, array in self._arrays.items()}
        columns: dict[str, dict[tuple[int, ...], Any]] = {}
        for entry in entries:
            cell = tuple(entry["cell"])
            for name, (dims, value) in entry["values"].items():
                columns.setdefault(name, {})[cell] = dims, value
            columns.setdefault("seconds", {})[cell] = (), entry["seconds"]
            columns.setdefault("reason", {})[cell] = (), entry["reason"]
        for name, column in columns.items():
            self._write_column(name, column)
        if known < len(self._arrays) or lengths != {name: self._arrays[name].shape for name in lengths}:
            self._consolidate()
        self.set_status({tuple(entry["cell"]): entry["status"] for entry in entries})

    def set_status(self, statuses: Mapping[tuple[int, ...], str]) -> None:
        """Write the status of cells."""
        if statuses:
            places = tuple(np.array(list(statuses)).T)
            self._arrays["status"].vindex[places] = np.array(list(statuses.values()), "U7")

    def statuses(self) -> np.ndarray:
        """The status of every cell."""
        return np.asarray(self._arrays["status"][...])

    def read(self) -> xr.Dataset:
        """All cells, loaded into memory."""
        with xr.open_zarr(self.path, chunks=None, consolidated=True, decode_times=False) as stored:
            return stored.load()

    def _write_column(self, name: str, column: Mapping[tuple[int, ...], tuple[Sequence[str], Any]]) -> None:
        dims, example = next(iter(column.values()))
        length = max(len(value) if kind else 0 for kind, value in column.values())
        array = self._ensure(name, dims, example, length)
        # A name that is a number in one cell, and a list or text in another, is stored as in the first cell.
        listed, text = array.ndim > len(self.axes), array.dtype.kind == "U"
        column = {
            cell: (kind, value)
            for cell, (kind, value) in column.items()
            if bool(kind) == listed and isinstance(value, str) == text
        }
        if not column:
            return
        places = tuple(np.array(list(column)).T)
        if not listed:
            array.vindex[places] = np.array([value for _, value in column.values()], array.dtype)
            return
        rows = np.full((len(column), array.shape[-1]), np.nan)
        for row, (_, value) in zip(rows, column.values(), strict=True):
            row[: len(value)] = value
        flat = tuple(np.repeat(place, rows.shape[1]) for place in places)
        array.vindex[(*flat, np.tile(np.arange(rows.shape[1]), len(rows)))] = rows.ravel()

    def _ensure(self, name: str, dims: Sequence[str], example: Any, length: int) -> Any:
        """The array of a name, which is created or made longer if necessary."""
        stored, dims = self._free(name), [self._free(each) if each != CURVE else each for each in dims]
        found = self._arrays.get(stored)
        if found is None:
            text = isinstance(example, str)
            dtype = np.dtype(_TEXTS.get(name, _TEXT) if text else float)
            sizes, chunk = self.shape, self.chunk
            if dims:
                sizes, chunk = (*sizes, length), (*chunk, POINTS if dims[0] == CURVE else _LIST_CHUNK)
            empty = None if text else np.nan
            found = self._new(stored, (*self.axes, *dims), sizes, chunk, dtype, empty)
            if name == "status":
                found[...] = np.full(sizes, "waiting", dtype)
        elif dims and found.ndim > len(self.axes) and found.shape[-1] < length:
            found.resize((*found.shape[:-1], length))
            self._lengthen(dims[0], length)
        return found

    def _free(self, name: str) -> str:
        """A name that no axis of the sweep has."""
        return f"{name}_" if name in (*self.axes, CURVE) else name

    def _lengthen(self, dimension: str, length: int) -> None:
        """Make all lists along a dimension equally long, as xarray requires."""
        for array in self._arrays.values():
            if array.attrs[DIMENSIONS][-1] == dimension and array.shape[-1] != length:
                array.resize((*array.shape[:-1], length))

    def _new(self, name: str, dims: Sequence[str], sizes: Any, chunk: Any, dtype: np.dtype, empty: Any) -> Any:
        same = [each.shape[-1] for each in self._arrays.values() if dims and each.attrs[DIMENSIONS][-1] == dims[-1]]
        if same and dims[-1] not in self.axes:
            longest = max(*same, sizes[-1])
            sizes = (*sizes[:-1], longest)
            self._lengthen(dims[-1], longest)
        long_name, units = _NAMES.get(name) or describe(name)
        attributes = {"long_name": long_name, "units": units, DIMENSIONS: list(dims)}
        found = self._group.create_array(
            name, shape=sizes, chunks=chunk, dtype=dtype, fill_value=empty, attributes=attributes
        )
        self._arrays[name] = found
        return found

    def _create(
        self, name: str, dims: Sequence[str], values: np.ndarray, chunk: Any, *, overwrite: bool = False
    ) -> None:
        """Write labels of an axis."""
        if overwrite and name in self._arrays:
            stored = self._arrays[name]
            if stored.shape == values.shape:
                return
            del self._group[name], self._arrays[name]
        long_name, units = describe(name)
        attributes = {"long_name": long_name, "units": units, DIMENSIONS: list(dims)}
        empty = np.nan if values.dtype.kind == "f" else None
        found = self._group.create_array(
            name, shape=values.shape, chunks=chunk, dtype=values.dtype, fill_value=empty, attributes=attributes
        )
        found[...] = values
        self._arrays[name] = found

    def _extend(self) -> None:
        """Make all arrays as long as the axes."""
        for name, array in self._arrays.items():
            dims = array.attrs[DIMENSIONS]
            if list(dims[: len(self.axes)]) != list(self.axes) or name in self.axes:
                continue
            before = array.shape
            target = (*self.shape, *before[len(self.axes) :])
            if before != target:
                array.resize(target)
                if name == "status":
                    statuses = np.asarray(array[...])
                    statuses[statuses == ""] = "waiting"
                    array[...] = statuses

    def _consolidate(self) -> None:
        zarr.consolidate_metadata(self.path, zarr_format=ZARR_FORMAT)
