"""Growing records: a zarr folder that grows along one axis and is readable at any time.

The folder is one dataset, preallocated along its growing axis, with the number of complete rows in `written`. Rows are
written before this number is increased, and every file is replaced atomically. A reader therefore finds every counted
row complete, even if the writer was killed.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr

from dynascope.errors import InputError
from dynascope.results.format_version import VERSION_ATTRIBUTE, require_format_version
from dynascope.results.growing_layout import (
    AXIS,
    DIMENSIONS,
    WRITTEN,
    ZARR_FORMAT,
    fill_value,
    make_folder,
    region,
    require_new_folder,
)
from dynascope.results.names import Names, name_all
from dynascope.results.packed_chunks import require_plain_decoder
from dynascope.results.row_buffer import RowBuffer
from dynascope.validation import checked, require, require_unpacked
from dynascope.validation.bounded_scalars import NonNegativeFloat, NonNegativeInt

__all__ = ["GrowingRecord"]

# Writing takes at most 1/_PAUSE of the time, unless rows would wait for longer than _LONGEST seconds.
_PAUSE, _LONGEST = 100, 10.0
_Place = int | slice | Sequence[int]


class GrowingRecord:
    """A record on disk to which rows are added during a run.

    Create a record with `GrowingRecord.create` and continue it with `GrowingRecord.open`. Only one process may write to
    a record at a time. Plain xarray can read the record at any time, even while it is written. Read `written` first,
    because xarray reads the labels of the axis when it opens a record::

        written = int(xr.open_zarr(path)["written"])
        record = xr.open_zarr(path).isel(step=slice(written))

    Appended rows stay in memory until a chunk is full, or until the first call after `seconds`. On a slow disk, they
    stay longer, which limits writing to about 1 % of the time; with `seconds=0`, every row is written at once. If the
    process is killed, rows in memory are lost, but counted rows survive. Files are not flushed to disk, so a power
    failure may lose more rows.

    Attributes:
        path: The folder.
        axis: The growing dimension.
        written: The number of rows on disk.
        seconds: The time for which appended rows stay in memory.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     variables = {"step": (["step"], int), "loss": (["step"], float)}
        ...     with GrowingRecord.create(f"{folder}/run.zarr", variables, axis="step") as record:
        ...         record.append({"step": 0, "loss": 1.0})
        ...         record.append({"step": [10, 20], "loss": [0.5, 0.25]})
        ...         found = record.read()
        >>> found["loss"].sel(step=20).item()
        0.25
    """

    def __init__(self, path: Path, *, seconds: NonNegativeFloat = 1.0) -> None:
        """Open an existing record; `create` and `open` validate the arguments."""
        self.path, self.seconds, self._pause = path, seconds, seconds
        # Readers use the consolidated metadata; the arrays may be larger if the process was killed while doubling them.
        seen: Any = zarr.open_group(path, mode="r", zarr_format=ZARR_FORMAT, use_consolidated=True)
        require_format_version(seen.attrs.get(VERSION_ATTRIBUTE), str(path))
        self.axis = str(seen.attrs[AXIS])
        group = zarr.open_group(path, mode="r+", zarr_format=ZARR_FORMAT, use_consolidated=False)
        arrays: dict[str, Any] = {name: group[name] for name in seen.array_keys()}
        for name, array in arrays.items():
            require_plain_decoder(name, array)
            require_unpacked(math.prod(array.chunks) * array.dtype.itemsize, f"a chunk of {name!r}", value=str(path))
        self._count = arrays.pop(WRITTEN)
        self.written = int(self._count[()])
        self._arrays = arrays
        self._dimensions = {name: list(array.attrs[DIMENSIONS]) for name, array in arrays.items()}
        self._growing = [name for name, dimensions in self._dimensions.items() if self.axis in dimensions]
        self._capacity = min(seen[name].shape[self._dimensions[name].index(self.axis)] for name in self._growing)
        self._buffer = RowBuffer(
            {name: self._sizes(name) for name in self._growing},
            {name: arrays[name].dtype for name in self._growing},
            self.axis,
        )
        self._flushed = time.monotonic()

    @classmethod
    @checked
    def create(
        cls,
        path: str | PathLike[str],
        variables: Mapping[str, tuple[Sequence[str], Any]],
        *,
        axis: str,
        coords: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
        names: Names | None = None,
        chunks: Mapping[str, int] | None = None,
        seconds: NonNegativeFloat = 1.0,
    ) -> GrowingRecord:
        """Create an empty record.

        Args:
            path: The folder to create, by convention `….zarr`; its parent must exist.
            variables: The dimensions and the type of each variable, such as `float`, `"int8"` or `"U20"` for text of at
                most 20 characters. Use `write_region` for variables without the growing axis, such as a status. A
                variable with the name of the axis contains its labels.
            axis: The growing dimension.
            coords: Labels of the other dimensions, and further coordinates, in any form that xarray accepts.
            attrs: Plain values, stored as JSON; `convention` and `version` are added.
            names: Long name and units by name, as for `name_all`.
            chunks: Chunk sizes along other dimensions, by default their full lengths. Writing is fastest if each region
                is a whole chunk, for example `{"cell": 1}` if the cells of a sweep are written one by one.
            seconds: See `seconds` of the class.

        Raises:
            InputError: The path exists, or its parent does not; a variable has an unsupported type or a dimension
                without labels; or no variable has the growing axis.
        """
        target = Path(path)
        require_new_folder(target)
        make_folder(target, variables, axis, coords or {}, attrs or {}, names, chunks or {})
        return cls(target, seconds=seconds)

    @classmethod
    @checked
    def open(cls, path: str | PathLike[str], *, seconds: NonNegativeFloat = 1.0) -> GrowingRecord:
        """Open a record to continue after its last counted row, or to read it.

        Args:
            path: The folder.
            seconds: See `seconds` of the class.

        Raises:
            InputError: The path is missing, is not a growing record, is damaged, or has another format version.
        """
        try:
            return cls(Path(path), seconds=seconds)
        except InputError:
            raise
        except Exception as error:  # A damaged folder can raise any error, in zarr or here.
            raise InputError(
                f"{str(path)!r} is not a growing record ({type(error).__name__}: {error})",
                argument="path",
                value=str(path),
                remedy="give a folder created by GrowingRecord.create",
            ) from error

    def append(self, values: Mapping[str, Any]) -> None:
        """Add one row, or a block of rows.

        Args:
            values: The values of all growing variables, either for one row, without the growing axis, or for several
                rows, with it.

        Raises:
            InputError: A variable is missing or unknown, or a value has another shape or does not match its type.
        """
        if self._buffer.add_row(values):
            self.flush_if_due()
            return
        blocks, rows = self._buffer.blocks(values)
        done = 0
        while done < rows:
            part = min(self._room(), rows - done)
            self._buffer.put(blocks, done, done + part)
            done += part
            self.flush_if_due()

    def write_region(self, values: Mapping[str, Any], places: Mapping[str, _Place]) -> None:
        """Write values at any position, for example one cell of a sweep.

        Variables with the growing axis are written first, then the count, then the others in the given order, so a
        status given last is never ahead of its data. All rows up to the last one with a written cell are counted. Cells
        without a value are NaN, 0 or empty.

        Args:
            values: The values of each variable, without the dimensions that have a single index in `places`.
            places: Indices by dimension, counted from 0; dimensions that are not listed are written completely.

        Raises:
            InputError: The record lacks a variable, dimension or index, or a value has another shape.

        Example:
            >>> import tempfile
            >>> variables = {"loss": (["cell", "step"], float), "done": (["cell"], bool)}
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     record = GrowingRecord.create(
            ...         f"{folder}/sweep.zarr", variables, axis="step", coords={"cell": [0, 1]}, chunks={"cell": 1}
            ...     )
            ...     record.write_region({"loss": [1.0, 0.5], "done": True}, {"cell": 1, "step": slice(0, 2)})
            ...     found = record.read()
            >>> found["done"].values.tolist(), found["loss"].values.tolist()
            ([False, True], [[nan, nan], [1.0, 0.5]])
        """
        self.flush()
        known = {dimension for name in values for dimension in self._dimensions.get(name, [])}
        for argument, names, all_of, what in (
            ("values", values, self._dimensions, "variable of the record"),
            ("places", places, known, "dimension of these values"),
        ):
            unknown = sorted(set(names) - set(all_of))
            require(
                not unknown,
                f"{argument} contains {''.join(map(repr, unknown[:1]))}, which is not a {what}",
                argument=argument,
                remedy=f"choose from {sorted(all_of)}",
            )
        growing = [name for name in values if name in self._growing]
        stop = max(self.written, _stop(places[self.axis]) if growing and self.axis in places else 0)
        regions = {}
        for name, value in values.items():
            regions[name] = region(name, value, self._arrays[name].dtype, self._sizes(name, stop), places)
        if stop > self.written:
            self._reserve(stop)
            for name in self._growing:  # a killed writer may have left values in rows that are not counted yet
                array = self._arrays[name]
                array[self._slice(name, self.written, stop)] = fill_value(array.dtype)
        for name in growing:
            self._arrays[name].set_orthogonal_selection(*regions.pop(name))
        if stop > self.written:
            self._set_written(stop)
        for name, rest in regions.items():
            self._arrays[name].set_orthogonal_selection(*rest)

    @checked
    def truncate(self, rows: NonNegativeInt) -> None:
        """Remove all rows after the first `rows`, for example to continue a run from an older checkpoint.

        Raises:
            InputError: The record has fewer rows.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     record = GrowingRecord.create(f"{folder}/run.zarr", {"loss": (["step"], float)}, axis="step")
            ...     record.append({"loss": [1.0, 0.5, 0.25]})
            ...     record.truncate(2)
            ...     record.append({"loss": 0.3})
            ...     found = record.read()
            >>> found["loss"].values
            array([1. , 0.5, 0.3])
        """
        self.flush()
        require(
            rows <= self.written,
            f"rows is {rows}, but the number of written rows is {self.written}",
            argument="rows",
            value=rows,
            remedy="give at most the number of written rows",
        )
        self._set_written(rows)

    def flush(self) -> None:
        """Write the appended rows that are still in memory, and count them."""
        start, stop = self.written, self.written + self._buffer.rows
        began = time.monotonic()
        if stop > start:
            self._reserve(stop)
            for name, values in self._buffer.waiting().items():
                self._arrays[name][self._slice(name, start, stop)] = values
            self._set_written(stop)
            self._pause = self.seconds and max(self.seconds, min(_LONGEST, _PAUSE * (time.monotonic() - began)))
        self._buffer.rows, self._flushed = 0, time.monotonic()

    def flush_if_due(self) -> None:
        """Write the appended rows if a chunk is full or they have been in memory for long enough."""
        if self._room() == 0 or time.monotonic() - self._flushed > self._pause:
            self.flush()

    def read(self) -> xr.Dataset:
        """Return the rows written so far, loaded into memory."""
        self.flush()
        rows = int(self._count[()])  # read before the labels of the axis, because another process may be writing
        require_unpacked(rows * self._buffer.bytes_of_a_row, repr(str(self.path)), value=str(self.path))
        with xr.open_zarr(self.path, chunks=None, consolidated=True, decode_times=False) as stored:
            record = stored.drop_vars(WRITTEN).isel({self.axis: slice(rows)}).load()
        if self.axis not in record.coords:
            record = record.assign_coords({self.axis: np.arange(rows)})
        for name in (VERSION_ATTRIBUTE, AXIS):
            del record.attrs[name]
        return name_all(record)

    def close(self) -> None:
        """Write the rows that are still in memory."""
        self.flush()

    def __repr__(self) -> str:
        return f"<GrowingRecord {str(self.path)!r}: {self.written} rows along {self.axis!r} on disk>"

    def __enter__(self) -> GrowingRecord:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _room(self) -> int:
        """Return the number of rows that still fit into the buffer, which ends at a chunk boundary."""
        return self._buffer.length - self.written % self._buffer.length - self._buffer.rows

    def _reserve(self, rows: int) -> None:
        """Double the lengths of the arrays until the rows fit; readers never see arrays of different lengths."""
        capacity = self._capacity
        while capacity < rows:
            capacity *= 2
        if capacity > self._capacity:
            for name in self._growing:
                self._arrays[name].resize(tuple(self._sizes(name, capacity).values()))
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".*not recognized as a component")  # the folder may hold other files
                zarr.consolidate_metadata(self.path, zarr_format=ZARR_FORMAT)
            self._capacity = capacity

    def _set_written(self, rows: int) -> None:
        self._count[()] = rows
        self.written = rows

    def _sizes(self, name: str, rows: int | None = None) -> dict[str, int]:
        """Return the size of each dimension of a variable; `rows`, if given, replaces the number of rows."""
        sizes = zip(self._dimensions[name], self._arrays[name].shape, strict=True)
        return {each: size if rows is None or each != self.axis else rows for each, size in sizes}

    def _slice(self, name: str, start: int, stop: int) -> tuple[slice, ...]:
        """Return the index of a range of rows of a variable."""
        return tuple(slice(start, stop) if each == self.axis else slice(None) for each in self._dimensions[name])


def _stop(place: _Place) -> int:
    """Return the number of rows that an index along the axis requires."""
    if isinstance(place, slice):
        return place.stop or 0
    return 1 + int(np.max(place, initial=-1))
