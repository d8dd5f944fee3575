"""Members of zip archives, read and replaced."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

__all__ = ["read_members", "write_members"]


def read_members(path: Path) -> dict[str, bytes]:
    """The content of each member."""
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(path: Path, members: Mapping[str, bytes | None]) -> Path:
    """Write an archive in place of another, without the members that are None."""
    with ZipFile(path, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            if content is not None:
                archive.writestr(name, content)
    return path
