"""The files of a stored record, in a zarr folder or in a zip archive, each read by name and only if it is needed."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from zarr.storage import ZipStore

from dynascope.arguments import require, require_unpacked

__all__ = ["StoredFiles", "stored_files"]

_DEEPEST = 3  # groups within groups
_MOST_GROUPS = 100
_MOST_FILES, _BYTES_OF_A_FILE = 3000, 2**14  # beyond the first so many, files are chunks, which are not small
_GROUP, _ARRAY, _ATTRIBUTES = ".zgroup", ".zarray", ".zattrs"


@dataclasses.dataclass(frozen=True)
class StoredFiles:
    """The files of a record, before any of them is read.

    Attributes:
        name: The name of the folder or the archive.
        sizes: The size of each file in bytes, by its path in the record; of a zip archive, the unpacked size that the
            archive declares, beyond which `read` reads nothing.
        read: Reads one file.
        store: What zarr and xarray open.
    """

    name: str
    sizes: dict[str, int]
    read: Callable[[str], bytes]
    store: Any

    @property
    def groups(self) -> list[str]:
        """The paths of the groups; that of the root is empty."""
        return self._nodes(_GROUP)

    @property
    def arrays(self) -> list[str]:
        """The paths of the arrays."""
        return self._nodes(_ARRAY)

    def chunks(self, array: str) -> dict[str, int]:
        """The chunks of an array, by key, with their sizes."""
        return self._chunks.get(array, {})

    @functools.cached_property
    def _chunks(self) -> dict[str, dict[str, int]]:
        arrays = set(self.arrays)
        found: dict[str, dict[str, int]] = {array: {} for array in arrays}
        for name, size in self.sizes.items():
            parts = name.split("/", _DEEPEST + 1)
            for end in range(1, len(parts)):
                array, key = "/".join(parts[:end]), "/".join(parts[end:])
                if array in arrays and key.replace(".", "").replace("/", "").isdecimal():
                    found[array][key] = size
        return found

    def _nodes(self, kind: str) -> list[str]:
        return sorted(name.rpartition("/")[0] for name in self.sizes if name.rpartition("/")[2] == kind)

    def require_sizes(self) -> None:
        """Raise `InputError` for no array, for more files than records have, and for more bytes than may be read.

        A file that does not belong to the record counts as a file only, since it is never read.
        """
        metadata = [name for name in self.sizes if name.rpartition("/")[2] in (_GROUP, _ARRAY, _ATTRIBUTES)]
        size = sum(self.sizes[name] for name in metadata)
        size += sum(size for chunks in self._chunks.values() for size in chunks.values())
        deepest = max((name.count("/") for name in metadata), default=0)
        for count, most, what in (
            (len(self.groups), _MOST_GROUPS, "groups"),
            (deepest, _DEEPEST, "levels of groups"),
            (len(self.sizes), _MOST_FILES + size // _BYTES_OF_A_FILE, "files"),
        ):
            require(
                count <= most,
                f"{self.name!r} holds {count} {what}, more than a record of its size has",
                argument="path",
                value=self.name,
                remedy="load only records that dynascope saved",
            )
        require(
            bool(self.arrays),
            f"{self.name!r} holds no array",
            argument="path",
            value=self.name,
            remedy="load only records that dynascope saved",
        )
        require_unpacked(size, repr(self.name), value=self.name)


@contextlib.contextmanager
def stored_files(source: Path) -> Iterator[StoredFiles]:
    """List the files of a record.

    Args:
        source: A folder or a zip archive.

    Raises:
        InputError: More files, or more bytes, than a record may have; a name that occurs twice or that leads out of the
            record; or a pipe or a device among the files.
    """
    if source.is_dir():
        files = StoredFiles(source.name, _in_folder(source), lambda name: (source / name).read_bytes(), source)
        files.require_sizes()
        yield files
        return
    with ZipFile(source) as archive:
        files = StoredFiles(source.name, _in_archive(archive), archive.read, source)
        files.require_sizes()
        # A store of zarr opens its file at first use, and cannot be closed before.
        with contextlib.closing(ZipStore(source, mode="r")) as store:
            yield dataclasses.replace(files, store=store)


def _in_folder(source: Path) -> dict[str, int]:
    sizes = {}
    for path in source.rglob("*"):
        require(
            path.is_file() or path.is_dir(),
            f"{source.name!r} holds {path.name!r}, which is neither a file nor a folder",
            argument="path",
            value=str(path),
            remedy="copy the record again, whole",
        )
        if path.is_file():
            sizes[path.relative_to(source).as_posix()] = path.stat().st_size
    return sizes


def _in_archive(archive: ZipFile) -> dict[str, int]:
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    twice = [name for name, count in Counter(entry.filename for entry in entries).items() if count > 1]
    astray = [entry.filename for entry in entries if {"", ".", ".."} & {*entry.filename.split("/")}]
    for names, problem in ((twice, "occurs twice in it"), (astray, "leads out of it")):
        require(
            not names,
            f"the archive is not a record: the name {''.join(names[:1])!r} {problem}",
            argument="path",
            value=archive.filename,
            remedy="load only records that dynascope saved",
        )
    return {entry.filename: entry.file_size for entry in entries}
