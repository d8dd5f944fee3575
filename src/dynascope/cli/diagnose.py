"""The command that diagnoses a recorded training run."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

# Rooms load their modules lazily, so that help appears immediately.
from dynascope import __version__, diagnosis, report
from dynascope.cli.exit_codes import AGREED
from dynascope.cli.options import check_options, with_bounds_in_help
from dynascope.cli.output import open_page, page_of, print_json, writing
from dynascope.cli.width import page_width

__all__ = ["Diagnose"]


@with_bounds_in_help
@dataclasses.dataclass(frozen=True)
class Diagnose:
    """Tell what happened in a recorded training run, why, and what to do.

    Args:
        path: The folder of a recorder.
        out: Path of the page; next to the record by default.
        json: Print one JSON object, and write no page.
        open: Open the page in the browser.
    """

    path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    out: Path | None = None
    json: bool = False
    open: bool = False

    def __call__(self) -> int:
        """Print the summary and what to do, and write the page."""
        check_options(self)
        found = diagnosis.diagnose(self.path)
        if self.json:
            print_json(found.to_json() | {"version": __version__})
            return AGREED
        print(found.as_text(width=page_width()))
        page = page_of(self.path)
        page = self.out or page.with_name(f"{page.stem}-diagnosis.html")
        with writing(page.parent):
            page = report.write_page(found, page)
        print(f"\nPage: {page}")
        if self.open:
            open_page(page)
        return AGREED
