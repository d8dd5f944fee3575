"""Tell the user what is going on: a spinner on a terminal, plain lines elsewhere; always on standard error."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

__all__ = ["step"]


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """Show that something is being done, and afterwards how long it took."""
    start = time.perf_counter()
    if sys.stderr.isatty():
        # Only where somebody watches is anything drawn.
        from rich.console import Console
        from rich.markup import escape

        console = Console(stderr=True)
        with console.status(escape(text)):
            yield
        console.print(f"[dim]{escape(text)} … {time.perf_counter() - start:.1f} s", highlight=False)
    else:
        print(f"{text} …", file=sys.stderr, flush=True)
        yield
        print(f"{text}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
