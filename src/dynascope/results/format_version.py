"""The version of the format in which results are stored."""

from __future__ import annotations

from typing import Any

from dynascope.validation import require, shown

__all__ = ["FORMAT_VERSION", "VERSION_ATTRIBUTE", "require_format_version"]

FORMAT_VERSION = 2
VERSION_ATTRIBUTE = "format_version"  # of the root; results of version 1 have none


def require_format_version(found: Any, path: str) -> None:
    """Raise `InputError` unless a stored result has the format version that this package reads.

    Args:
        found: The version attribute of the root; None if it is absent, which means version 1.
        path: The path of the result, for the message.

    Example:
        >>> require_format_version(2, "run.zarr.zip")
        >>> require_format_version(None, "run.zarr")
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: 'run.zarr' has format version 1, but this release reads format version 2: create
            ...
    """
    require(
        found == FORMAT_VERSION,
        f"{path!r} has format version {1 if found is None else shown(found)}, but this release reads format version "
        f"{FORMAT_VERSION}",
        argument="path",
        value=path,
        remedy="create the record again",
    )
