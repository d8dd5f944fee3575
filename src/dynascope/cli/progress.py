"""Tell the user what is going on: a progress bar on a terminal, plain lines elsewhere; always on standard error."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

__all__ = ["step"]


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """Show that something is being done, how far it is where it tells, and afterwards how long it took."""
    if sys.stderr.isatty():
        from dynascope.cli.progress_bar import drawn  # it loads rich, and only where somebody watches is anything drawn

        with drawn(text):
            yield
    else:
        start = time.perf_counter()
        print(f"{text} …", file=sys.stderr, flush=True)
        yield
        print(f"{text}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
