"""Write results: a page, a record, or one JSON value on standard output."""

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

# Rooms load their modules lazily.
from dynascope import report, results
from dynascope.cli.failure import FULL
from dynascope.cli.progress import step
from dynascope.errors import InputError
from dynascope.validation import require

if TYPE_CHECKING:
    from dynascope.results import Result

__all__ = [
    "check_writable",
    "open_page",
    "page_of",
    "print_json",
    "print_paths",
    "replace_results",
    "result_name",
    "write_results",
    "writing",
]

_LONGEST = 50  # maximum bytes of a name, without ".zarr.zip"


def check_writable(folder: Path) -> None:
    """Check before the computation that results can be written to the folder."""
    place = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    require(
        place.is_dir() and os.access(place, os.W_OK),
        f"the folder {folder} is not writable",
        argument="out",
        value=str(folder),
        remedy="choose another folder with --out",
    )


def result_name(subject: str, changed: Mapping[str, Any]) -> str:
    """Return the file name of results, which contains the options that differ from their defaults.

    Example:
        >>> result_name("trees linear", {"scale": 1e-06, "target": ("height",)})
        'dynascope-trees-linear-scale=1e-06-target=height'
    """
    parts = [
        name.replace("_", "-") + ("" if value is True else f"={_option_text(value)}") for name, value in changed.items()
    ]
    whole = "-".join(["dynascope", subject, *parts])
    plain = "".join(letter if letter.isalnum() or letter in "-_.=,+" else "-" for letter in whole)
    if len(plain.encode()) <= _LONGEST:
        return plain
    # The hash distinguishes names that differ only in the part that is cut off.
    start = plain.encode()[: _LONGEST - 9].decode(errors="ignore")
    return f"{start}-{hashlib.sha256(plain.encode()).hexdigest()[:8]}"


def write_results(tree: Result, folder: Path, name: str) -> Path:
    """Write `<name>.html` and `<name>.zarr.zip` to the folder; returns the path of the latter.

    Existing files are never overwritten: the first free name of `<name>-run-2`, `<name>-run-3`, … is used instead.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with step("Writing the page and the record"), _free(folder, name) as path:
            written = results.save(tree, path)
            report.write_page(tree, page_of(path))
    return written


def replace_results(tree: Result, written: Path) -> None:
    """Replace a page and a record that already exist; each file is replaced atomically."""
    with writing(written.parent), step("Writing the page and the record"):
        results.save(tree, written)
        report.write_page(tree, page_of(written))


@contextlib.contextmanager
def writing(place: Path) -> Iterator[None]:
    """Convert file-system errors to an `InputError` about the output folder.

    Raises:
        InputError: The folder is not writable, or the disk is full.
    """
    try:
        yield
    except OSError as error:
        full = error.errno in FULL
        reason = "the disk is full" if full else (error.strerror or str(error)).lower()
        raise InputError(
            f"results cannot be written to {place} ({reason})",
            argument="out",
            value=str(place),
            remedy=f"{'free some space, or ' if full else ''}choose another folder with --out",
        ) from error


def print_paths(written: Path) -> None:
    """Print the paths of the record and the page."""
    print(f"Record: {written}")
    print(f"Page: {page_of(written)}")


def open_page(page: Path) -> None:
    """Open a page, or the page of a record, in the browser."""
    page = page_of(page)
    if not webbrowser.open(page.resolve().as_uri()):
        print(f"dynascope: found no browser to open {page}.", file=sys.stderr)


def print_json(answer: Any) -> None:
    """Print one JSON value, in ASCII and without NaN, which is not valid JSON."""
    print(json.dumps(answer, allow_nan=False))


def page_of(path: Path) -> Path:
    """Return the path of the page that belongs to a record; the path of a page is returned unchanged."""
    if path.suffix == ".html":
        return path
    return path.with_name(f"{path.name.removesuffix('.zip').removesuffix('.zarr')}.html")


def _option_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_option_text, value))
    return value.name if isinstance(value, Path) else str(value)


@contextlib.contextmanager
def _free(folder: Path, name: str) -> Iterator[Path]:
    """Reserve a path at which neither a record nor its page exists yet.

    An empty page is created immediately, so that simultaneous runs get different names.
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
