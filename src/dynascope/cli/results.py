"""Where the command line leaves what it found: a page, a record, or one JSON value on standard output."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

# The face of a room loads what is behind it when it is used.
from dynascope import record, report
from dynascope.arguments import require, require_seed
from dynascope.cli.progress import step

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["check_before", "print_json", "write_results"]


def check_before(folder: Path, seed: int) -> None:
    """Refuse before the work what would fail only in the midst of it or after."""
    require_seed(seed)
    place = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    require(
        place.is_dir() and os.access(place, os.W_OK),
        f"nothing can be written in {folder}",
        argument="out",
        value=str(folder),
        remedy="choose another folder with --out",
    )


def write_results(tree: xr.DataTree, folder: Path, name: str) -> Path:
    """Write `dynascope-<name>.html` and `dynascope-<name>.zarr` into the folder; returns the path of the latter."""
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    folder.mkdir(parents=True, exist_ok=True)
    with step("Writing the page and the record"):
        written = record.save(tree, folder / f"dynascope-{plain}.zarr")
        report.write_page(tree, folder / f"dynascope-{plain}.html")
    return written


def print_json(answer: Any) -> None:
    """Print one JSON value. It is ASCII, which passes every pipe, and holds no NaN, which would not be JSON."""
    print(json.dumps(answer, allow_nan=False))
