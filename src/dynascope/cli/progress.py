"""Report progress: with a bar on a terminal, otherwise with lines about long computations."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from dynascope.flows.progress import progress_listener

__all__ = ["once", "step"]

_SECONDS = 10  # between two progress lines


class _Lines:
    """Prints the announcements of long computations and, at intervals, their progress."""

    def __init__(self, text: str):
        self.text, self.next = text, float("inf")

    def announced(self, sentence: str) -> None:
        self.next = time.monotonic() + _SECONDS
        print(sentence, file=sys.stderr, flush=True)

    def __call__(self, done: float, planned: float, unit: str) -> None:
        if time.monotonic() >= self.next and planned:
            self.next = time.monotonic() + _SECONDS
            print(f"{self.text}: {_progress_text(done, planned, unit)} …", file=sys.stderr, flush=True)


def _progress_text(done: float, planned: float, unit: str) -> str:
    """Format progress in whole items as a count, otherwise as a percentage."""
    if float(done).is_integer() and float(planned).is_integer():
        return f"{done:.0f} of {planned:.0f} {unit}"
    return f"{100 * done / planned:.0f} %" if planned else ""


def once(announce: Callable[[str], object]) -> Callable[[str], None]:
    """Return a function that forwards each sentence only once, for example over many seeds.

    Example:
        >>> announce = once(print)
        >>> for _ in range(3):
        ...     announce("It takes a minute.")
        It takes a minute.
    """
    seen: set[str] = set()

    def first(sentence: str) -> None:
        if sentence not in seen:
            seen.add(sentence)
            announce(sentence)

    return first


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """Show the progress of a step on a terminal, and its duration afterwards."""
    if sys.stderr.isatty():
        with _bar(text):
            yield
    else:
        lines = _Lines(text)
        with progress_listener(lines, announced=once(lines.announced)):
            yield


@contextlib.contextmanager
def _bar(text: str) -> Iterator[None]:
    """Show a progress bar on standard error, with the elapsed and the remaining time."""
    # Imported here, since rich is needed only on a terminal.
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.table import Column

    console, start = Console(stderr=True), time.monotonic()
    columns = (
        SpinnerColumn(),
        TextColumn(escape(text), table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
        BarColumn(16),
        TextColumn("{task.fields[counted]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, expand=True) as line:
        task = line.add_task("", total=None, counted="")

        def listen(done: float, planned: float, unit: str) -> None:
            line.update(task, completed=done, total=planned, counted=_progress_text(done, planned, unit))

        with progress_listener(listen, announced=lambda text: console.print(escape(text), highlight=False)):
            yield
    console.print(f"[dim]{escape(text)} … {time.monotonic() - start:.1f} s", highlight=False)
