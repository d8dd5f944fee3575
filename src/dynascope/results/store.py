"""Storing records: a zarr folder to work with, or one zip file to pass on.

A file appears whole or not at all: it is written beside its target under another name and renamed. Reading a record
runs no code: arrays that need a decoder other than plain decompression are rejected. Only files that belong to the
record are read, and nothing is unpacked to the disk.
"""

from __future__ import annotations

import math
import os
import warnings
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo, is_zipfile

import xarray as xr
import zarr
from zarr.storage import MemoryStore

from dynascope.arguments import require, require_unpacked
from dynascope.errors import InputError
from dynascope.results.attributes import check_attributes
from dynascope.results.names import name_all
from dynascope.results.packed_chunks import require_whole_chunks
from dynascope.results.schema import validate_record
from dynascope.results.stored_files import StoredFiles, stored_files
from dynascope.results.whole_files import repaired, written_beside

__all__ = ["export", "load", "save"]

# Version 2 of the format is the one that specifies fixed-length text, so labels come back as they went in.
_FORMAT = 2
_LONGEST_ATTRIBUTES = 10**8  # bytes
_GROUPS = ["/", "/setup", "/observed", "/predicted", "/residual"]


def save(tree: xr.DataTree | xr.Dataset, path: str | PathLike[str]) -> Path:
    """Save a record as a zarr store, a folder, in place of an older record of the same name.

    The older record is kept until the new one is complete, so that neither a failed write nor a kill loses both.

    Args:
        tree: The record, or a tree of records such as `compare` returns.
        path: The folder to make, by custom named `….zarr`; its parent must exist.

    Returns:
        The path.

    Raises:
        InputError: The tree is not made of records, or the path holds something that is not a record.

    Example:
        >>> import tempfile
        >>> from dynascope.results import make_record
        >>> curve = make_record({"loss": (["time"], [1.0, 0.5])}, {"time": [0.0, 1.0]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     load(save(curve, f"{folder}/curve.zarr"))["loss"].values
        array([1. , 0.5])
    """
    tree = _checked(tree)
    target = Path(path)
    repaired(target)
    require(
        not os.path.lexists(target) or _is_store(target),
        f"{str(target)!r} exists and is not a record",
        argument="path",
        value=str(target),
        remedy="choose another path, or move it away first",
    )
    files = _files(tree)
    with written_beside(target) as partial:
        for name, content in files.items():
            file = partial / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    return target


def export(tree: xr.DataTree | xr.Dataset, path: str | PathLike[str]) -> Path:
    """Save a record as one file, a zipped zarr store, which `load` reads too.

    Args:
        tree: The record, or a tree of records.
        path: The file to make, named `….zip`; its folder must exist.

    Returns:
        The path.

    Raises:
        InputError: The tree is not made of records, the name does not end in `.zip`, or the path holds something that
            is not a record.
    """
    tree = _checked(tree)
    target = Path(path)
    require(
        target.suffix == ".zip",
        f"{str(target)!r} does not end in '.zip'",
        argument="path",
        value=str(target),
        remedy="name the file ….zip, or save a folder with record.save",
    )
    require(
        not os.path.lexists(target) or _is_archive(target),
        f"{str(target)!r} exists and is not a record",
        argument="path",
        value=str(target),
        remedy="choose another path, or move it away first",
    )
    files = _files(tree)
    with written_beside(target) as partial, ZipFile(partial, "w") as archive:
        for name, content in sorted(files.items()):
            # A ZipInfo of its own carries no clock, so that equal records give equal files.
            archive.writestr(ZipInfo(name), content)
    return target


def load(path: str | PathLike[str]) -> xr.DataTree:
    """Read a record that `save` or `export` wrote, into memory.

    Args:
        path: The zarr folder or the zip file.

    Returns:
        The tree of records, checked; a record that was saved alone is the root of the tree.

    Raises:
        InputError: The path is missing, is not a record, or is damaged.
    """
    target = Path(path)
    while True:
        source = repaired(target)
        seen = _identity(source)
        try:
            found = _read_from(source, str(target))
            # One that was replaced meanwhile may be a mixture of the two.
            if _identity(source) == seen:
                return found
        except Exception as error:  # A damaged store fails in zarr, in numcodecs or in xarray, each in its own way.
            if _identity(source) != seen:
                continue  # it was replaced while it was read
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"{str(target)!r} is damaged ({type(error).__name__}: {error})",
                argument="path",
                value=str(target),
                remedy="make the record again",
            ) from error


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file or folder from another of the same name."""
    try:
        found = path.stat()
    except OSError:  # also a link that points at itself
        return None
    # The number of a folder that is gone is given to the next; the time is that at which its files were made.
    return found.st_ino, found.st_ctime_ns if path.is_file() else found.st_mtime_ns


def _read_from(source: Path, named: str) -> xr.DataTree:
    require(
        source.exists(),
        f"{named!r} does not exist",
        argument="path",
        value=named,
        remedy="give the path of a record that dynascope saved",
    )
    require(
        _is_store(source) or _is_archive(source),
        f"{named!r} is not a record",
        argument="path",
        value=named,
        remedy="give a zarr folder or a zip file that dynascope saved",
    )
    return _checked(_read(source))


def _is_store(path: Path) -> bool:
    """Whether the path is a zarr folder in which this package wrote a record."""
    return (path / ".zgroup").is_file() and any(
        '"convention"' in attributes.read_text("utf-8", errors="replace")
        for attributes in [*path.glob(".zattrs"), *path.glob("*/.zattrs")]
        if attributes.is_file() and attributes.stat().st_size <= _LONGEST_ATTRIBUTES
    )


def _is_archive(path: Path) -> bool:
    if not (path.is_file() and is_zipfile(path)):
        return False
    with ZipFile(path) as archive:
        return ".zgroup" in archive.namelist()


def _checked(tree: xr.DataTree | xr.Dataset) -> xr.DataTree:
    tree = xr.DataTree(tree) if isinstance(tree, xr.Dataset) else tree
    require(
        isinstance(tree, xr.DataTree),
        f"the record is a {type(tree).__name__}",
        argument="tree",
        value=type(tree).__name__,
        remedy="pass an xarray Dataset or DataTree",
    )
    require(
        any("convention" in node.attrs for node in [tree, *tree.children.values()]),
        "no group of the tree is a record",
        argument="tree",
        remedy="make the groups with make_record",
    )
    for node in tree.subtree:
        check_attributes(node.attrs)
        if node.variables:
            validate_record(node.to_dataset(inherit=False))
    return tree


def _files(tree: xr.DataTree) -> dict[str, bytes]:
    """The files of a record by their paths in its folder.

    They are made in memory, since for each file that zarr writes itself two threads wait for each other.
    """
    made: dict[str, Any] = {}
    # Every chunk is written, even one of nothing but zeros, so that a chunk that is missing later is a loss.
    tree.to_zarr(MemoryStore(made), zarr_format=_FORMAT, consolidated=False, write_empty_chunks=True)
    return {name: content.to_bytes() for name, content in made.items()}


def _read(source: Path) -> xr.DataTree:
    with stored_files(source) as files:
        _check_nodes(files)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*not recognized as a component")  # files that do not belong to it
            tree = xr.open_datatree(files.store, engine="zarr", consolidated=False, decode_times=False)
        with tree:
            # A record of an older version, or one that was computed with, may have parts without names.
            records = {node.path: name_all(node.to_dataset(inherit=False).load()) for node in tree.subtree}
    # Folders list their files in no order of their own.
    names = sorted(records, key=lambda name: (name.count("/"), _GROUPS.index(name) if name in _GROUPS else 99, name))
    return xr.DataTree.from_dict({name: records[name][sorted(records[name].data_vars, key=str)] for name in names})


def _check_nodes(files: StoredFiles) -> None:
    """Open every group and every array, one after the other, so that the first that is damaged is the only error."""
    opened: dict[str, Any] = {"store": files.store, "mode": "r", "zarr_format": _FORMAT}
    for name in files.groups:
        zarr.open_group(path=name, use_consolidated=False, **opened)
    size = 0
    for name in files.arrays:
        array = zarr.open_array(path=name, **opened)
        size += math.prod(array.shape) * array.dtype.itemsize
        require_unpacked(size, f"the array {name!r}, with those before it,", value=name)
        require_whole_chunks(name, array, files)
