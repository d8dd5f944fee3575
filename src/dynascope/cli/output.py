"""Where the command line leaves what it found: a page, a record, or one JSON value on standard output."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import sys
import webbrowser
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

# The face of a room loads what is behind it when it is used.
from dynascope import report, results
from dynascope.cli.failure import FULL
from dynascope.cli.progress import step
from dynascope.errors import InputError
from dynascope.validation import require

if TYPE_CHECKING:
    from dynascope.results import Result

__all__ = [
    "check_before",
    "open_page",
    "page_of",
    "print_json",
    "print_places",
    "replace_results",
    "result_name",
    "write_results",
    "writing",
]

_LONGEST = 50  # bytes of a name, to which ".zarr.zip" is added


def check_before(folder: Path) -> None:
    """Refuse before the work what would fail only in the midst of it or after."""
    place = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    require(
        place.is_dir() and os.access(place, os.W_OK),
        f"nothing can be written in {folder}",
        argument="out",
        value=str(folder),
        remedy="choose another folder with --out",
    )


def result_name(subject: str, changed: Mapping[str, Any]) -> str:
    """The name of results, with what makes them different from those of the same command without options.

    Example:
        >>> result_name("trees linear", {"scale": 1e-06, "target": ("height",)})
        'dynascope-trees-linear-scale=1e-06-target=height'
    """
    parts = [name.replace("_", "-") + ("" if value is True else f"={_told(value)}") for name, value in changed.items()]
    whole = "-".join(["dynascope", subject, *parts])
    plain = "".join(letter if letter.isalnum() or letter in "-_.=,+" else "-" for letter in whole)
    if len(plain.encode()) <= _LONGEST:
        return plain
    # Cut where two names that differ only later still differ.
    start = plain.encode()[: _LONGEST - 9].decode(errors="ignore")
    return f"{start}-{hashlib.sha256(plain.encode()).hexdigest()[:8]}"


def write_results(tree: Result, folder: Path, name: str) -> Path:
    """Write `<name>.html` and `<name>.zarr.zip` into the folder; returns the path of the latter.

    What is there already stays: the first of `<name>-run-2`, `<name>-run-3`, … that is free is taken instead.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with step("Writing the page and the record"), _free(folder, name) as path:
            written = results.save(tree, path)
            report.write_page(tree, page_of(path))
    return written


def replace_results(tree: Result, written: Path) -> None:
    """Write a page and a record in place of those that were written there; each is whole at any time."""
    with writing(written.parent), step("Writing the page and the record"):
        results.save(tree, written)
        report.write_page(tree, page_of(written))


@contextlib.contextmanager
def writing(place: Path) -> Iterator[None]:
    """Errors of the file system become one about the place that results go to.

    Raises:
        InputError: Nothing can be written there; a full disk is named as such.
    """
    try:
        yield
    except OSError as error:
        full = error.errno in FULL
        reason = "the disk is full" if full else (error.strerror or str(error)).lower()
        raise InputError(
            f"nothing can be written in {place} ({reason})",
            argument="out",
            value=str(place),
            remedy=f"{'free some space, or ' if full else ''}choose another place with --out",
        ) from error


def print_places(written: Path) -> None:
    """Say where the results are, the page last."""
    print(f"Record: {written}")
    print(f"Page: {page_of(written)}")


def open_page(page: Path) -> None:
    """Show a page, or the page of a record, in the browser."""
    page = page_of(page)
    if not webbrowser.open(page.resolve().as_uri()):
        print(f"dynascope: no browser was found to open {page}.", file=sys.stderr)


def print_json(answer: Any) -> None:
    """Print one JSON value. It is ASCII, which passes every pipe, and holds no NaN, which would not be JSON."""
    print(json.dumps(answer, allow_nan=False))


def page_of(path: Path) -> Path:
    """The page of a record, by its place; a page is its own."""
    if path.suffix == ".html":
        return path
    return path.with_name(f"{path.name.removesuffix('.zip').removesuffix('.zarr')}.html")


def _told(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_told, value))
    return value.name if isinstance(value, Path) else str(value)


@contextlib.contextmanager
def _free(folder: Path, name: str) -> Iterator[Path]:
    """A path for a record which neither it nor its page has yet.

    The page is made at once, empty, so that of two runs at the same time each has a name of its own.
    """
    for number in itertools.count(1):
        path = folder / (f"{name}.zarr.zip" if number == 1 else f"{name}-run-{number}.zarr.zip")
        if not os.path.lexists(path):
            with contextlib.suppress(FileExistsError):
                page_of(path).touch(exist_ok=False)
                break
    try:
        yield path
    except BaseException:
        page_of(path).unlink(missing_ok=True)
        raise
