"""Save and load finished results, each as one zip file that plain xarray can also open.

Writes are atomic: a file is written next to its target under another name and then moved into place. Loading executes
no code, and rejects arrays that require a decoder other than plain decompression. Only members that belong to the
record are read, and only into memory.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import xarray as xr
import zarr
from zarr.buffer.cpu import Buffer
from zarr.storage import MemoryStore

from dynascope.errors import InputError
from dynascope.results.archive_members import Members, read_members
from dynascope.results.attributes import check_attributes
from dynascope.results.format_version import FORMAT_VERSION, VERSION_ATTRIBUTE, require_format_version
from dynascope.results.growing import GrowingRecord
from dynascope.results.names import name_all
from dynascope.results.packed_chunks import require_whole_chunks
from dynascope.results.result import Result
from dynascope.results.schema import validate_record
from dynascope.results.tree import AnyResult, from_tree, to_tree
from dynascope.results.whole_files import written_beside
from dynascope.validation import require, require_unpacked

__all__ = ["load", "save"]

# Version 2 of the zarr format specifies fixed-length text, so labels come back as they went in. It also specifies
# consolidated metadata, without which xarray warns when it opens the file.
_ZARR_FORMAT = 2
_GROUPS = ["/", "/setup", "/observed", "/predicted", "/residual"]


def save(result: AnyResult, path: str | PathLike[str]) -> Path:
    """Save a result or a record as one file, replacing an older record of the same name.

    If the write fails or the process is killed, the path contains either the old or the new record. Plain xarray opens
    the file with `xr.open_datatree(zarr.storage.ZipStore(path, mode="r"), engine="zarr")`.

    Args:
        result: A result, or a single record.
        path: The file, named `….zip`, usually `….zarr.zip`; its folder must exist.

    Returns:
        The path.

    Raises:
        InputError: The input contains no records, the name does not end in `.zip`, or the path exists but is not a
            record.

    Example:
        >>> import tempfile
        >>> from dynascope.results import make_record
        >>> curve = make_record({"loss": (["time"], [1.0, 0.5])}, {"time": [0.0, 1.0]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     load(save(curve, f"{folder}/curve.zarr.zip")).observed["loss"].values
        array([1. , 0.5])
    """
    tree = _checked(to_tree(result) if isinstance(result, Result) else result)
    target = Path(path)
    require(
        target.suffix == ".zip",
        f"{str(target)!r} does not end in '.zip'",
        argument="path",
        value=str(target),
        remedy="choose a file name that ends in .zarr.zip",
    )
    require(
        not os.path.lexists(target) or _is_archive(target),
        f"{str(target)!r} exists but is not a record",
        argument="path",
        value=str(target),
        remedy="choose another path, or move the existing file first",
    )
    members = _members(tree)
    with written_beside(target) as partial, ZipFile(partial, "w") as archive:
        for name, content in sorted(members.items()):
            packed = ZIP_DEFLATED if "/.z" in f"/{name}" else ZIP_STORED  # zarr has already compressed the chunks
            # A new ZipInfo has no date, so equal records give equal files.
            archive.writestr(ZipInfo(name), content, compress_type=packed)
    return target


def load(path: str | PathLike[str]) -> Result:
    """Load a result written by `save`, or the rows that a growing record contains so far, into memory.

    A growing record, such as that of a recorded training run, can be loaded while another process writes to it.

    Args:
        path: The file `….zarr.zip`, or the folder `….zarr` of a growing record.

    Returns:
        The validated result: a comparison, a prediction or an observation. A growing record is an observation.

    Raises:
        InputError: The path is missing, is not a record, is damaged, or has another format version.

    Example:
        >>> import tempfile
        >>> from dynascope.results import make_record
        >>> curve = make_record({"loss": (["time"], [1.0, 0.5])}, {"time": [0.0, 1.0]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     load(save(curve, f"{folder}/curve.zarr.zip"))["loss"].values
        array([1. , 0.5])
    """
    target = Path(path)
    require(
        target.exists(),
        f"{str(target)!r} does not exist",
        argument="path",
        value=str(target),
        remedy="give the path of a record that dynascope saved",
    )
    try:
        return from_tree(_checked(_read(target)))
    except InputError:
        raise
    except Exception as error:  # A damaged store fails in zarr, in numcodecs or in xarray, each in its own way.
        raise InputError(
            f"{str(target)!r} is damaged ({type(error).__name__}: {error})",
            argument="path",
            value=str(target),
            remedy="create the record again",
        ) from error


def _is_archive(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with ZipFile(path) as archive:
            return ".zgroup" in archive.namelist()
    except (BadZipFile, NotImplementedError, UnicodeDecodeError):
        return False


def _checked(tree: xr.DataTree | xr.Dataset) -> xr.DataTree:
    tree = xr.DataTree(tree) if isinstance(tree, xr.Dataset) else tree
    require(
        isinstance(tree, xr.DataTree),
        f"the record has type {type(tree).__name__}",
        argument="tree",
        value=type(tree).__name__,
        remedy="pass a result, an xarray.Dataset or an xarray.DataTree",
    )
    require(
        any("convention" in node.attrs for node in [tree, *tree.children.values()]),
        "no group of the tree is a record",
        argument="tree",
        remedy="create the groups with make_record",
    )
    for node in tree.subtree:
        check_attributes(node.attrs)
        if node.variables:
            validate_record(node.to_dataset(inherit=False))
    return tree


def _members(tree: xr.DataTree) -> dict[str, bytes]:
    """The members of the archive, by name."""
    made: dict[str, Any] = {}
    tree = tree.copy(deep=False)
    tree.attrs = {**tree.attrs, VERSION_ATTRIBUTE: FORMAT_VERSION}
    # Every chunk is written, even one of nothing but zeros, so that a chunk that is missing later is a loss.
    tree.to_zarr(MemoryStore(made), zarr_format=_ZARR_FORMAT, consolidated=True, write_empty_chunks=True)
    return {name: content.to_bytes() for name, content in made.items()}


def _read(source: Path) -> xr.DataTree:
    if (source / ".zmetadata").is_file():
        return xr.DataTree(GrowingRecord.open(source).read())
    if (source / ".zgroup").is_file():
        require_format_version(None, str(source))  # version 1 wrote folders too, without consolidated metadata
    require(
        _is_archive(source),
        f"{str(source)!r} is not a record",
        argument="path",
        value=str(source),
        remedy="give a .zarr.zip file that dynascope saved, or the folder of a growing record",
    )
    members = read_members(source)
    attributes = json.loads(members.content.get(".zattrs", b"{}"))
    require_format_version(attributes.get(VERSION_ATTRIBUTE), str(source))
    store: Any = MemoryStore({name: Buffer.from_bytes(content) for name, content in members.content.items()})
    _check_nodes(members, store)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not recognized as a component")  # attributes without a group
        tree = xr.open_datatree(store, engine="zarr", consolidated=False, decode_times=False)
    with tree:
        # A record that was computed with may have parts without names.
        records = {node.path: name_all(node.to_dataset(inherit=False).load()) for node in tree.subtree}
    del records["/"].attrs[VERSION_ATTRIBUTE]
    names = sorted(records, key=lambda name: (name.count("/"), _GROUPS.index(name) if name in _GROUPS else 99, name))
    return xr.DataTree.from_dict({name: records[name][sorted(records[name].data_vars, key=str)] for name in names})


def _check_nodes(members: Members, store: MemoryStore) -> None:
    """Open every group and array in turn, so that the error names the first damaged one."""
    opened: dict[str, Any] = {"store": store, "mode": "r", "zarr_format": _ZARR_FORMAT}
    for name in members.groups:
        zarr.open_group(path=name, use_consolidated=False, **opened)
    size = 0
    for name in sorted(members.chunks):
        array = zarr.open_array(path=name, **opened)
        size += math.prod(array.shape) * array.dtype.itemsize
        require_unpacked(size, f"the array {name!r}, together with the arrays before it,", value=name)
        require_whole_chunks(name, array, members)
