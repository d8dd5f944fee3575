"""The store of a sweep: a zarr folder with one array for each stored name, readable by xarray while it grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from dynascope.results import describe
from dynascope.results.growing_layout import DIMENSIONS, ZARR_FORMAT
from dynascope.sweeps.measurements import CURVE, POINTS, SHARE

__all__ = ["STATUSES", "Hypercube"]

STATUSES = ("waiting", "running", "done", "failed")
_TEXTS = {"status": "U7", "reason": "U200"}  # lengths of texts in every sweep
_TEXT = "U40"
_PIECES = {0: 1, 1: 64, 2: 16, 3: 4}  # length of a chunk along each list, by the number of dimensions
_OWN = ("status", "reason", "seconds")  # variables of every sweep
_NAMES = {
    CURVE: ("position in the curve", "1"),
    "status": ("state of the cell", "1"),
    "reason": ("why the cell failed", "1"),
    "seconds": ("duration of the cell", "s"),
    "verdict": ("verdict", "1"),
    SHARE: ("largest error over its tolerance", "1"),
}


class Hypercube:
    """Arrays over the grid of a sweep.

    Every array has the axes of the sweep first. Further dimensions are the points of a curve, or positions in lists,
    and are as long as the longest list so far. Numbers of cells that are not done are NaN, and texts are empty.

    Attributes:
        path: The folder.
        axes: The values of each axis of the sweep.
        chunk: The number of cells of a chunk along each axis.
    """

    def __init__(self, path: Path, axes: Mapping[str, Sequence[Any]], chunk: Sequence[int], *, described: bool):
        """Create or open the folder.

        Args:
            path: The folder.
            axes: The values of each axis of the sweep, which may be longer than those on disk.
            chunk: The number of cells of a chunk along each axis.
            described: Whether names are those of the quantities of dynascope, with their long names and units.
        """
        self.path, self.axes, self.chunk, self._described = path, dict(axes), tuple(chunk), described
        self._group = zarr.open_group(path, mode="a", zarr_format=ZARR_FORMAT, use_consolidated=False)
        self._arrays: dict[str, Any] = {name: self._group[name] for name in self._group.array_keys()}
        self._lengths: dict[str, int] = {}  # along dimensions other than the axes
        for array in self._arrays.values():
            named = zip(array.attrs[DIMENSIONS], array.shape, strict=True)
            self._lengths |= {name: size for name, size in named if name not in self.axes}
        for name, values in {CURVE: np.linspace(0, 1, POINTS), **self.axes}.items():
            self._label(name, np.asarray(values))
        self._lengths[CURVE] = POINTS
        for name in ("status", "reason"):
            self._ensure(name, (), (), text=True)
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
        known = {name: array.shape for name, array in self._arrays.items()}
        columns: dict[str, dict[tuple[int, ...], Any]] = {}
        for entry in entries:
            cell = tuple(entry["cell"])
            for name, (dims, value) in entry["values"].items():
                free = tuple(each if each == CURVE else self._free(each) for each in dims)
                columns.setdefault(self._free(name), {})[cell] = free, value
            columns.setdefault("seconds", {})[cell] = (), entry["seconds"]
            columns.setdefault("reason", {})[cell] = (), entry["reason"]
        for name, column in columns.items():
            self._write_column(name, column)
        if known != {name: array.shape for name, array in self._arrays.items()}:
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

    def _write_column(self, name: str, column: Mapping[tuple[int, ...], tuple[tuple[str, ...], Any]]) -> None:
        dims, example = next(iter(column.values()))
        stored = self._arrays.get(name)
        if stored is not None:
            dims = tuple(stored.attrs[DIMENSIONS][len(self.axes) :])
            text = stored.dtype.kind == "U"
        else:
            text = isinstance(example, str)
        # If dimensions or kind differ between cells, only cells that match the first stored one are kept.
        kept = {
            cell: value for cell, (kind, value) in column.items() if kind == dims and isinstance(value, str) == text
        }
        if not kept:
            return
        places = tuple(np.array(list(kept)).T)
        if not dims:
            array = self._ensure(name, (), (), text=text)
            array.vindex[places] = np.array(list(kept.values()), array.dtype)
            return
        blocks = [np.asarray(value, float) for value in kept.values()]
        lengths = tuple(np.max([block.shape for block in blocks], axis=0).tolist())
        array = self._ensure(name, dims, lengths, text=False)
        values = np.full((len(blocks), *array.shape[len(self.axes) :]), np.nan)
        for row, block in zip(values, blocks, strict=True):
            row[tuple(map(slice, block.shape))] = block
        inner = np.ix_(*map(np.arange, values.shape))
        index = tuple(place[inner[0]] for place in places) + inner[1:]
        array.vindex[tuple(np.broadcast_arrays(*index))] = values

    def _ensure(self, name: str, dims: tuple[str, ...], lengths: tuple[int, ...], *, text: bool) -> Any:
        """The array of a name, which is created or made longer if necessary."""
        for dimension, length in zip(dims, lengths, strict=True):
            self._lengths[dimension] = max(length, self._lengths.get(dimension, 0))
        if name not in self._arrays:
            dtype = np.dtype(_TEXTS.get(name, _TEXT) if text else float)
            sizes = (*self.shape, *(self._lengths[each] for each in dims))
            piece = _PIECES[min(len(dims), max(_PIECES))]
            chunk = (*self.chunk, *(POINTS if each == CURVE else piece for each in dims))
            found = self._add(name, (*self.axes, *dims), sizes, chunk, dtype)
            if name == "status":
                found[...] = np.full(sizes, "waiting", dtype)
        for array in self._arrays.values():  # xarray requires equal lengths along a dimension
            named = array.attrs[DIMENSIONS]
            target = tuple(self._lengths.get(each, size) for each, size in zip(named, array.shape, strict=True))
            if target != array.shape:
                array.resize(target)
        return self._arrays[name]

    def _free(self, name: str) -> str:
        """A name that neither the sweep nor one of its axes has."""
        return f"{name}_" if name in (*self.axes, *_OWN, CURVE) else name

    def _add(self, name: str, dims: Sequence[str], sizes: Any, chunk: Any, dtype: np.dtype) -> Any:
        words = _NAMES.get(name) or (describe(name) if self._described else (name.replace("_", " "), "1"))
        attributes = {"long_name": words[0], "units": words[1], DIMENSIONS: list(dims)}
        empty = np.nan if dtype.kind == "f" else None
        self._arrays[name] = self._group.create_array(
            name, shape=sizes, chunks=chunk, dtype=dtype, fill_value=empty, attributes=attributes
        )
        return self._arrays[name]

    def _label(self, name: str, values: np.ndarray) -> None:
        """Write the labels of a dimension."""
        if name in self._arrays:
            if self._arrays[name].shape == values.shape:
                return
            del self._group[name], self._arrays[name]
        self._add(name, (name,), values.shape, values.shape, values.dtype)[...] = values

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
