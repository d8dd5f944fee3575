"""Read the members of a zip archive that belong to a record into memory, after checking their sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from dynascope.validation import require, require_unpacked

__all__ = ["Members", "read_members"]

_DEEPEST = 3  # groups within groups
_MOST_GROUPS = 100
_MOST_MEMBERS, _BYTES_OF_A_MEMBER = 3000, 2**14  # members beyond the first 3000 are chunks, which are not small
_GROUP, _ARRAY, _ATTRIBUTES = ".zgroup", ".zarray", ".zattrs"


class Members(NamedTuple):
    """The members of a record.

    Attributes:
        content: The bytes of each member, by path in the record.
        groups: The paths of the groups; the root has the empty path.
        chunks: The keys of the chunks of each array, by path.
    """

    content: dict[str, bytes]
    groups: list[str]
    chunks: dict[str, set[str]]


def read_members(path: Path) -> Members:
    """Read the members of a record.

    Other members of the archive are not unpacked, and nothing is unpacked to disk. A member is unpacked only up to the
    size that the archive declares.

    Args:
        path: A zip archive.

    Raises:
        InputError: The archive contains too many members or members that are too large, contains no array, repeats a
            name, contains a path that leads out of the record, or uses a compression method for which the unpacked size
            cannot be bounded.
    """
    with ZipFile(path) as archive:
        entries = {entry.filename: entry for entry in _entries(archive)}
        groups, chunks = _nodes(entries, _GROUP), _chunks(entries)
        metadata = [name for name in entries if name.rpartition("/")[2] in (_GROUP, _ARRAY, _ATTRIBUTES)]
        belonging = [*metadata, *(f"{array}/{key}" for array, keys in chunks.items() for key in keys)]
        size = sum(entries[name].file_size for name in belonging)
        deepest = max((name.count("/") for name in metadata), default=0)
        for count, most, what in (
            (len(groups), _MOST_GROUPS, "groups"),
            (deepest, _DEEPEST, "levels of groups"),
            (len(entries), _MOST_MEMBERS + size // _BYTES_OF_A_MEMBER, "files"),
        ):
            _require(count <= most, path, f"contains {count} {what}, more than a record of this size can have")
        _require(bool(chunks), path, "contains no array")
        require_unpacked(size, repr(path.name), value=path.name)
        return Members({name: _content(archive, entries[name]) for name in belonging}, groups, chunks)


def _entries(archive: ZipFile) -> list[ZipInfo]:
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    twice = [name for name, count in Counter(entry.filename for entry in entries).items() if count > 1]
    astray = [entry.filename for entry in entries if {"", ".", ".."} & {*entry.filename.split("/")}]
    # The module zipfile bounds what it unpacks at a time for these two only.
    packed = [entry.filename for entry in entries if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED)]
    for names, problem in (
        (twice, "occurs twice"),
        (astray, "is outside the archive"),
        (packed, "is compressed by a method other than deflate"),
    ):
        problem = f"is not a record, because the member {''.join(names[:1])!r} {problem}"
        _require(not names, Path(str(archive.filename)), problem)
    return entries


def _chunks(names: Iterable[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {array: set() for array in _nodes(names, _ARRAY)}
    for name in names:
        parts = name.split("/", _DEEPEST + 1)
        for end in range(1, len(parts)):
            array, key = "/".join(parts[:end]), "/".join(parts[end:])
            if array in found and key.replace(".", "").replace("/", "").isdecimal():
                found[array].add(key)
    return found


def _nodes(names: Iterable[str], kind: str) -> list[str]:
    return sorted(name.rpartition("/")[0] for name in names if name.rpartition("/")[2] == kind)


def _content(archive: ZipFile, entry: ZipInfo) -> bytes:
    with archive.open(entry) as member:
        return member.read(entry.file_size)


def _require(condition: bool, path: Path, problem: str) -> None:
    require(
        condition,
        f"{path.name!r} {problem}",
        argument="path",
        value=path.name,
        remedy="load only records that dynascope saved",
    )
