"""Atomic file writes: a file is written next to its target and then moved into place."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from dynascope.validation import require

__all__ = ["written_beside"]


@contextmanager
def written_beside(path: str | PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path next to the target, and move the file written there to the target on exit.

    After an error or a killed process, the target is either the old or the new file. The file is flushed to disk once,
    before it is moved. A killed writer leaves a file `.NAME.partial-….SUFFIX`, which is never read.

    Args:
        path: The target; its folder must exist. If it is a symbolic link, the linked file is replaced.

    Yields:
        A path in the same folder with the same suffix.

    Raises:
        InputError: The folder of the target does not exist, or the target is a folder.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with written_beside(Path(folder, "note.txt")) as partial:
        ...         _ = partial.write_text("whole")
        ...     [file.name for file in Path(folder).iterdir()]
        ['note.txt']
    """
    target = Path(os.path.realpath(path))
    for condition, problem, remedy in (
        (target.parent.is_dir(), f"the folder {str(target.parent)!r} does not exist", "create this folder first"),
        (not target.is_dir(), f"{str(path)!r} is a folder", "give the path of a file"),
    ):
        require(condition, problem, argument="path", value=str(path), remedy=remedy)
    partial = target.with_name(f".{target.stem}.partial-{secrets.token_hex(4)}{target.suffix}")
    try:
        yield partial
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
