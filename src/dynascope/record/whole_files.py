"""Files and folders that appear whole or not at all: written beside their target under another name and renamed."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from dynascope.arguments import require

__all__ = ["place_of_previous", "written_beside"]


@contextmanager
def written_beside(path: str | PathLike[str]) -> Iterator[Path]:
    """Give a free path beside the target, and rename what was written there to the target at the end.

    After an error the target is as it was. A file or a folder may be written; the target may exist, as the same kind.

    Args:
        path: The target; its folder must exist.

    Yields:
        A path in the same folder with the same suffix.

    Raises:
        InputError: The folder of the target does not exist, or the target of a file is a folder.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with written_beside(Path(folder, "note.txt")) as partial:
        ...         _ = partial.write_text("whole")
        ...     [file.name for file in Path(folder).iterdir()]
        ['note.txt']
    """
    target = Path(path)
    require(
        target.parent.is_dir(),
        f"the folder {str(target.parent)!r} does not exist",
        argument="path",
        value=str(target),
        remedy="create it first, or choose another",
    )
    # The link stays a link: what it points at is replaced.
    target = target.resolve()
    partial = target.with_name(f".{target.stem}.{secrets.token_hex(4)}{target.suffix}")
    try:
        yield partial
        if partial.is_dir():
            _replace_folder(partial, target)
        else:
            require(
                not target.is_dir(),
                f"{str(path)!r} is a folder",
                argument="path",
                value=str(path),
                remedy="give the name of a file",
            )
            os.replace(partial, target)
    finally:
        _delete(partial)


def _replace_folder(new: Path, target: Path) -> None:
    if target.exists():
        previous = place_of_previous(target)
        os.rename(target, previous)
        try:
            os.rename(new, target)
        except BaseException:
            os.rename(previous, target)
            raise
        shutil.rmtree(previous)
    else:
        os.rename(new, target)


def place_of_previous(target: Path) -> Path:
    """Where the older folder waits while a new one takes its place."""
    target = target.resolve()
    return target.with_name(f".{target.name}.previous")


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
