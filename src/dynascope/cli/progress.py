"""Tell the user what is going on: a progress bar on a terminal, plain lines elsewhere; always on standard error."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

from dynascope.flows.progress import listening

__all__ = ["step"]


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """Show that something is being done, how far it is where it tells, and afterwards how long it took."""
    start = time.perf_counter()
    if sys.stderr.isatty():
        # Only where somebody watches is anything drawn.
        from rich.console import Console
        from rich.markup import escape

        from dynascope.cli.progress_bar import Pace, progress_bar

        console, pace = Console(stderr=True), Pace()
        with progress_bar(text, pace, console), listening(pace.hear):
            yield
        console.print(f"[dim]{escape(text)} … {time.perf_counter() - start:.1f} s", highlight=False)
    else:
        print(f"{text} …", file=sys.stderr, flush=True)
        yield
        print(f"{text}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
