"""Files and folders that appear whole or not at all: written beside their target under another name and renamed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from dynascope.arguments import require
from dynascope.errors import InputError
from dynascope.results.exchange import exchanged
from dynascope.results.one_writer import one_writer

__all__ = ["repaired", "written_beside"]


@contextmanager
def written_beside(path: str | PathLike[str]) -> Iterator[Path]:
    """Give a free path beside the target, and rename what was written there to the target at the end.

    After an error the target is as it was, and after a kill at any moment as it was or as it was to be (see
    `repaired`); what a killed writer left is deleted by the next. What is written is flushed to the disk before it
    takes its place, once. Of two writers one waits for the other. A file or a folder may be written; the target may
    exist, as the same kind.

    Args:
        path: The target; its folder must exist.

    Yields:
        A path in the same folder with the same suffix.

    Raises:
        InputError: The folder of the target does not exist, the target of a file is a folder, or another process
            writes it for more than a minute.

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
    target = _behind_links(target)
    with one_writer(target):
        _restore(target)
        _delete_leftovers(target)
        partial = target.with_name(f".{target.stem}.partial-{secrets.token_hex(4)}{target.suffix}")
        try:
            yield partial
            _flush(partial)
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


def repaired(path: str | PathLike[str]) -> Path:
    """Where a target of `written_beside` is, back in its place if a kill left it beside that.

    Returns:
        The target; or, while another process is just replacing it or where nothing can be written, the older one.
    """
    target = Path(path)
    behind = _behind_links(target)
    previous = _place_of_previous(behind)
    if target.exists() or not previous.exists():
        return target
    with contextlib.suppress(OSError, InputError), one_writer(behind, patience=0.0):
        _restore(behind)
    return target if target.exists() else previous


def _behind_links(path: Path) -> Path:
    """What a link points at; a link in a circle is left as it is, where `Path.resolve` would give up."""
    return Path(os.path.realpath(path))


def _replace_folder(new: Path, target: Path) -> None:
    """Put the new folder in the place of the older one, which then has the name of the new one or is gone."""
    if not target.exists():
        os.rename(new, target)
        return
    if exchanged(new, target):
        return
    previous = _place_of_previous(target)
    os.rename(target, previous)
    try:
        os.rename(new, target)
    except BaseException:
        os.rename(previous, target)
        raise
    shutil.rmtree(previous)


def _restore(target: Path) -> None:
    """Finish a replacement that a kill cut short; deleting the older one begins when the new one is in its place."""
    previous = _place_of_previous(target)
    if target.exists():
        _delete(previous)
    elif previous.exists():
        os.rename(previous, target)


def _delete_leftovers(target: Path) -> None:
    """Delete what writers have left that were killed."""
    name = re.compile(re.escape(f".{target.stem}.partial-") + "[0-9a-f]{8}" + re.escape(target.suffix))
    for path in target.parent.iterdir():
        if name.fullmatch(path.name):
            _delete(path)


def _flush(path: Path) -> None:
    """Have all of a file or folder on the disk, by a single call."""
    if sys.platform == "win32":
        return
    place = os.open(path, os.O_RDONLY)
    try:
        if path.is_dir() and (flush := getattr(ctypes.CDLL(None), "syncfs", None)) is not None:
            flush(place)  # of the whole file system, since folders have many files
        else:
            os.fsync(place)
    finally:
        os.close(place)


def _place_of_previous(target: Path) -> Path:
    """Where the older folder waits while a new one takes its place, on file systems that cannot exchange them."""
    return target.with_name(f".{target.name}.previous")


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
