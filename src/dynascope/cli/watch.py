"""The command that shows the page of a training run in the browser during the run."""

from __future__ import annotations

import dataclasses
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import tyro

# Rooms load their modules lazily.
from dynascope import results
from dynascope.cli.exit_codes import AGREED
from dynascope.cli.options import check_options, with_bounds_in_help
from dynascope.cli.page_server import PageServer
from dynascope.validation import require
from dynascope.validation.bounded_scalars import NonNegativeInt

__all__ = ["Watch"]


@with_bounds_in_help
@dataclasses.dataclass(frozen=True)
class Watch:
    """Show the page of a recorded training run in the browser, and refresh it during the run.

    The page is served to this computer only, at an address with a random token. Press Ctrl-C to stop the server.

    Args:
        path: The folder of a recorder.
        port: Port of the server; 0 selects a free port.
        open: Open the page in the browser.
    """

    path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    port: NonNegativeInt = 0
    open: bool = False

    def __call__(self) -> int:
        """Serve the page until interrupted."""
        check_options(self)
        with PageServer(self._page, self._rows, port=self.port) as server:
            print(f"Page: {server.address} (Ctrl-C to stop)", flush=True)
            if self.open and not webbrowser.open(server.address):
                print("dynascope: found no browser to open the page.", file=sys.stderr)
            server.serve_forever()
        return AGREED

    def _page(self) -> str:
        from dynascope.diagnosis import load_run  # slower than the rest of the command
        from dynascope.report.page import render_page

        return render_page(load_run(self.path))

    def _rows(self) -> int:
        require(
            self.path.is_dir(),
            f"there is no folder {str(self.path)!r}",
            argument="path",
            value=str(self.path),
            remedy="give the folder of a recording that has started",
        )
        return results.GrowingRecord.open(self.path).written
