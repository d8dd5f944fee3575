"""Progress reports from long computations to an optional listener."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

__all__ = ["Listener", "announce", "progress_listener", "report_progress", "report_time", "track"]

Listener = Callable[[float, float, str], Any]
_Item = TypeVar("_Item")


class _Receiver:
    """A listener, and the nested loops whose progress is combined."""

    def __init__(self, listener: Listener | None = None, announced: Callable[[str], Any] | None = None):
        self.listener, self.announced = listener, announced
        # Index of the current item, number of items and their unit for each loop, outermost first.
        self.parts: list[tuple[int, int, str]] = []

    def report_progress(self, done: float, planned: float, unit: str) -> None:
        for number, parts, kind in reversed(self.parts):
            # An item can consist of several computations, so the end of one is not the end of the item.
            share = min(done / planned, 0.99) if planned else 0.0
            done, planned, unit = number + share, parts, kind
        if self.listener is not None:
            self.listener(done, planned, unit)


# A context variable, so that threads and tasks can have different listeners.
_receiver: contextvars.ContextVar[_Receiver | None] = contextvars.ContextVar("dynascope_progress", default=None)


@contextlib.contextmanager
def progress_listener(listener: Listener, announced: Callable[[str], Any] | None = None) -> Iterator[None]:
    """Call a listener with the progress of every long computation in this context.

    `descend` reports steps, `alternating_flow` reports completed ensemble members, and `track` reports the items of a
    loop. A gradient flow is a single compiled program and reports nothing until it ends.

    Args:
        listener: Function called repeatedly with the completed amount, the planned amount and the unit, such as
            "steps". The completed amount can decrease when another computation begins.
        announced: Function called with a sentence before a computation that takes a long time or much memory.

    Example:
        >>> with progress_listener(lambda done, planned, unit: print(f"{done:g} of {planned:g} {unit}")):
        ...     for network in track(["first", "second"], "networks"):
        ...         pass
        0 of 2 networks
        1 of 2 networks
        2 of 2 networks
    """
    token = _receiver.set(_Receiver(listener, announced))
    try:
        yield
    finally:
        _receiver.reset(token)


def report_progress(done: float, planned: float, unit: str) -> None:
    """Report the progress of a computation to the listener, if there is one.

    Example:
        >>> report_progress(1, 3, "members")
    """
    receiver = _receiver.get()
    if receiver is not None:
        receiver.report_progress(done, planned, unit)


def announce(sentence: str) -> None:
    """Announce an expensive computation to the listener, if there is one.

    Example:
        >>> with progress_listener(lambda *report: None, announced=print):
        ...     announce("It takes an hour.")
        It takes an hour.
    """
    receiver = _receiver.get()
    if receiver is not None and receiver.announced is not None:
        receiver.announced(sentence)


def report_time(time: float, duration: float, steps: int, most: int | None = None) -> None:
    """Report the flow time or, if steps are limited, the percentage of time or of steps, whichever is larger.

    Example:
        >>> with progress_listener(lambda *report: print(report)):
        ...     report_time(1.0, 4.0, 30)
        ...     report_time(1.0, 4.0, 30, most=60)
        (1.0, 4.0, 'time')
        (50.0, 100.0, 'percent')
    """
    if most is None:
        report_progress(time, duration, "time")
    else:
        report_progress(100 * min(max(time / duration, steps / most), 1.0), 100.0, "percent")


def track(items: Sequence[_Item], unit: str) -> Iterator[_Item]:
    """Iterate over items and report progress; progress reported within an item is a fraction of this item.

    Args:
        items: Items that each take about the same time.
        unit: Name of the items, in the plural.

    Yields:
        The items.

    Example:
        >>> list(track([1e-3, 1e-4], "scales"))
        [0.001, 0.0001]
    """
    receiver = _receiver.get() or _Receiver()
    depth = len(receiver.parts)
    try:
        receiver.report_progress(0, len(items), unit)
        for number, item in enumerate(items):
            receiver.parts[depth:] = [(number, len(items), unit)]
            yield item
            del receiver.parts[depth:]
            receiver.report_progress(number + 1, len(items), unit)
    finally:
        del receiver.parts[depth:]
