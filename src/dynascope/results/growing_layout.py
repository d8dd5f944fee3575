"""Layout of a growing record: arrays, chunks, creation and validation of values."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr

from dynascope import __version__
from dynascope.errors import InputError
from dynascope.results.format_version import FORMAT_VERSION, VERSION_ATTRIBUTE
from dynascope.results.names import Names, name_all
from dynascope.results.schema import CONVENTION
from dynascope.validation import require, shown

__all__ = [
    "AXIS",
    "DIMENSIONS",
    "WRITTEN",
    "ZARR_FORMAT",
    "fill_value",
    "fitted",
    "make_folder",
    "power_of_two",
    "region",
    "require_new_folder",
]

# Version 2 of the zarr format specifies fixed-length text and consolidated metadata, which version 3 does not yet. The
# consolidated metadata are one file, so that a reader never sees a record in which only some arrays were doubled.
ZARR_FORMAT = 2
WRITTEN, AXIS = "written", "growing_axis"
DIMENSIONS = "_ARRAY_DIMENSIONS"  # the attribute in which xarray looks for them
_CHUNK_BYTES, _MOST_ROWS = 2**18, 2**13


def require_new_folder(path: Path) -> None:
    """Raise `InputError` unless a record can be created at the path."""
    for valid, problem, remedy in (
        (path.suffix != ".zip", "is the name of a zip file", "choose a folder name that ends in .zarr"),
        (path.parent.is_dir(), "is in a folder that does not exist", "create the folder first"),
        (not os.path.lexists(path), "already exists", "choose another path, or continue the existing record"),
    ):
        require(valid, f"{str(path)!r} {problem}", argument="path", value=str(path), remedy=remedy)


def make_folder(
    target: Path,
    variables: Mapping[str, tuple[Sequence[str], Any]],
    axis: str,
    coords: Mapping[str, Any],
    attrs: Mapping[str, Any],
    names: Names | None,
    chunks: Mapping[str, int],
) -> None:
    """Create the folder of an empty record, with the arguments of `GrowingRecord.create`.

    Raises:
        InputError: The arguments are inconsistent.
    """
    variables = {name: _declared(name, each) for name, each in variables.items()}
    template = _template(variables, axis, coords, attrs, names)
    unknown = sorted({*chunks} - ({*map(str, template.sizes)} - {axis}))
    require(
        not unknown,
        f"chunks contains {', '.join(unknown)}",
        argument="chunks",
        value=unknown,
        remedy=f"give chunk sizes only for dimensions of the variables other than {axis!r}, which grows",
    )
    partial = target.with_name(f".{target.stem}.partial-{secrets.token_hex(4)}{target.suffix}")
    template.drop_vars(list(variables)).to_zarr(partial, zarr_format=ZARR_FORMAT, consolidated=False)
    group = zarr.open_group(partial, mode="r+", zarr_format=ZARR_FORMAT, use_consolidated=False)
    pieces = {name: _chunk(template[name], axis, chunks) for name in variables}
    capacity = max(piece[axis] for piece in pieces.values() if axis in piece)
    for name, piece in pieces.items():
        values = template[name]
        group.create_array(
            name,
            shape=[capacity if dimension == axis else values.sizes[dimension] for dimension in piece],
            chunks=tuple(piece.values()),
            dtype=values.dtype,
            # xarray hides values that equal the fill value of an array; only NaN may be hidden.
            fill_value=np.nan if values.dtype.kind == "f" else None,
            attributes={**values.attrs, DIMENSIONS: list(piece)},
        )
    count = group.create_array(WRITTEN, shape=[], dtype=int, fill_value=None, attributes={DIMENSIONS: []})
    count[()] = 0
    zarr.consolidate_metadata(partial, zarr_format=ZARR_FORMAT)
    os.rename(partial, target)


def _declared(name: str, declared: Any) -> tuple[tuple[str, ...], np.dtype]:
    """Return the dimensions and the type of a variable."""
    try:
        dimensions, kind = declared
        dtype = np.dtype(kind)
    except (TypeError, ValueError):
        raise InputError(
            f"the variable {name!r} is declared as {shown(declared)}",
            argument="variables",
            value=name,
            remedy="give a tuple (dimensions, type), such as (['step'], float)",
        ) from None
    return (dimensions,) if isinstance(dimensions, str) else tuple(dimensions), dtype


def power_of_two(limit: float) -> int:
    """Return the largest power of two up to the limit, at least 1 and at most the maximum number of rows per chunk.

    Example:
        >>> power_of_two(100), power_of_two(0.5), power_of_two(1e9)
        (64, 1, 8192)
    """
    return 1 << max(0, int(min(limit, _MOST_ROWS)).bit_length() - 1)


def fill_value(dtype: np.dtype) -> Any:
    """Return the value of unwritten cells: NaN, 0, false or empty text."""
    return np.nan if dtype.kind == "f" else dtype.type()


def fitted(name: str, value: Any, dtype: np.dtype) -> np.ndarray:
    """Convert a value to an array of the given type; raise `InputError` if the type cannot represent it.

    Example:
        >>> fitted("status", 3, np.dtype("int8"))
        array(3, dtype=int8)
        >>> fitted("status", 300, np.dtype("int8"))
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: the type int8 of 'status' cannot represent this int64 value: ...
    """
    array = np.asarray(value)
    if array.dtype == dtype:
        return array
    kinds = array.dtype.kind, dtype.kind
    fits = kinds.count("U") != 1 and (np.can_cast(array.dtype, dtype, "same_kind") or set(kinds) <= {"i", "u"})
    changed = array.astype(dtype) if fits else array
    require(
        fits and (dtype.kind not in "iuU" or np.array_equal(changed, array)),
        f"the type {dtype} of {name!r} cannot represent this {array.dtype} value",
        argument=name,
        value=value,
        remedy="convert the value, or create the record with another type",
    )
    return changed


def region(
    name: str, value: Any, dtype: np.dtype, sizes: Mapping[str, int], places: Mapping[str, Any]
) -> tuple[Any, np.ndarray]:
    """Return the zarr index of a region of a variable, and the given value in the type of the variable.

    Raises:
        InputError: The variable has no such position, or the value does not fit its shape or type.

    Example:
        >>> region("loss", [1, 2], np.dtype(float), {"cell": 3, "step": 2}, {"cell": 1})
        ((1, slice(0, 2, 1)), array([1., 2.]))
    """
    selection, shape = [], []
    for dimension, size in sizes.items():
        place = places.get(dimension, slice(None))
        try:
            index = np.arange(size)[place]
        except IndexError as error:
            raise InputError(
                f"the index {place} is outside the dimension {dimension!r} of length {size}",
                argument="places",
                value=place,
                remedy=f"give indices from 0 to {size - 1}",
            ) from error
        shape += index.shape
        selection.append(
            slice(*place.indices(size)) if isinstance(place, slice) else index if index.ndim else int(index)
        )
    array = fitted(name, value, dtype)
    require(
        array.shape == tuple(shape),
        f"{name!r} has shape {array.shape}, but the selected region has shape {tuple(shape)}",
        argument=name,
        value=array.shape,
        remedy="give one value for each selected position",
    )
    return tuple(selection) or ..., array


def _template(
    variables: Mapping[str, tuple[Sequence[str], Any]],
    axis: str,
    coords: Mapping[str, Any],
    attrs: Mapping[str, Any],
    names: Names | None,
) -> xr.Dataset:
    """Return the record without rows."""
    try:
        labels = xr.Dataset(coords=coords)
    except ValueError as error:
        raise InputError(
            f"the coordinates are inconsistent ({error})", argument="coords", remedy="give labels of equal lengths"
        ) from None
    sizes = {**labels.sizes, axis: 0}
    for name, (dimensions, _) in variables.items():
        missing = [dimension for dimension in dimensions if dimension not in sizes]
        for fits, problem in (
            (not missing, f"the dimension {''.join(missing[:1])!r} of {name!r} has no labels"),
            (len({*dimensions}) == len(dimensions), f"{name!r} repeats a dimension"),
            (name != WRITTEN and name not in labels.coords, f"the name {name!r} is already used"),
        ):
            require(
                fits,
                problem,
                argument="variables",
                value=name,
                remedy="give labels for every dimension except the growing one, and use unique names",
            )
    require(
        axis not in labels.sizes and any(axis in dimensions for dimensions, _ in variables.values()),
        f"coords contains labels of the growing axis {axis!r}"
        if axis in labels.sizes
        else f"no variable has the growing dimension {axis!r}",
        argument="axis",
        value=axis,
        remedy="choose as axis the growing dimension of the variables, and pass its labels as a variable",
    )
    empty = {}
    for name, (dimensions, dtype) in variables.items():
        require(
            dtype.kind in "fiubU" and dtype.itemsize > 0,
            f"the type of {name!r} is {dtype}",
            argument="variables",
            value=str(dtype),
            remedy="use real numbers, booleans, or text with a maximum length such as 'U20'",
        )
        empty[name] = (list(dimensions), np.empty([sizes[each] for each in dimensions], dtype))
    about = {"convention": CONVENTION, "version": __version__, **attrs, VERSION_ATTRIBUTE: FORMAT_VERSION, AXIS: axis}
    return name_all(labels.assign(empty).assign_attrs(about), names)


def _chunk(values: xr.DataArray, axis: str, chunks: Mapping[str, int]) -> dict[str, int]:
    """Return the size of a chunk along each dimension of a variable."""
    sizes = {str(name): max(1, min(chunks.get(str(name), size), size)) for name, size in values.sizes.items()}
    if axis in sizes:
        sizes[axis] = 1
        sizes[axis] = power_of_two(_CHUNK_BYTES / (np.prod(list(sizes.values())) * values.dtype.itemsize))
    return sizes
