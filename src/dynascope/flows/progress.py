"""How far a long computation is, told to whoever listens; nobody does unless they say so."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

__all__ = ["Listener", "announce", "progress_listener", "report_progress", "report_time", "track"]

Listener = Callable[[float, float, str], Any]
_Item = TypeVar("_Item")


class _Heard:
    """Who listens, and which parts of what whole are told to be done meanwhile."""

    def __init__(self, listener: Listener | None = None, announced: Callable[[str], Any] | None = None):
        self.listener, self.announced = listener, announced
        self.parts: list[
            tuple[int, int, str]
        ] = []  # number of the part, how many there are, what they are; outer first

    def report_progress(self, done: float, planned: float, unit: str) -> None:
        for number, parts, kind in reversed(self.parts):
            # The end of one computation need not be that of the part, which may go through several.
            share = min(done / planned, 0.99) if planned else 0.0
            done, planned, unit = number + share, parts, kind
        if self.listener is not None:
            self.listener(done, planned, unit)


# Of this context, so that threads and tasks with other listeners do not disturb each other.
_heard: contextvars.ContextVar[_Heard | None] = contextvars.ContextVar("dynascope_progress", default=None)


@contextlib.contextmanager
def progress_listener(listener: Listener, announced: Callable[[str], Any] | None = None) -> Iterator[None]:
    """Be told how far every long computation inside is.

    `descend` tells its steps, `alternating_flow` the members of an ensemble that are done, and `track` what a loop
    goes through. A gradient flow is one compiled program, which tells nothing before its end.

    Args:
        listener: Called now and then with how much is done, how much is planned, and what is counted, such as "steps".
            What is done falls when another computation begins.
        announced: Called with a sentence before something begins that takes long or much memory, which says how much.

    Example:
        >>> with progress_listener(lambda done, planned, unit: print(f"{done:g} of {planned:g} {unit}")):
        ...     for network in track(["first", "second"], "networks"):
        ...         pass
        0 of 2 networks
        1 of 2 networks
        2 of 2 networks
    """
    token = _heard.set(_Heard(listener, announced))
    try:
        yield
    finally:
        _heard.reset(token)


def report_progress(done: float, planned: float, unit: str) -> None:
    """Tell whoever listens how far a computation is.

    Example:
        >>> report_progress(1, 3, "members")
    """
    heard = _heard.get()
    if heard is not None:
        heard.report_progress(done, planned, unit)


def announce(sentence: str) -> None:
    """Tell whoever wants to know what begins, and what it will take.

    Example:
        >>> with progress_listener(lambda *told: None, announced=print):
        ...     announce("It takes an hour.")
        It takes an hour.
    """
    heard = _heard.get()
    if heard is not None and heard.announced is not None:
        heard.announced(sentence)


def report_time(time: float, duration: float, steps: int, most: int | None = None) -> None:
    """Tell how far a flow is: as far as its time, or its steps where there may be so many only.

    Example:
        >>> with progress_listener(lambda *told: print(told)):
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
    """Go through items and tell how many are done; what is told while one is at work counts as a part of it.

    Args:
        items: What to go through, of about equal cost.
        unit: What they are, in plural.

    Yields:
        The items.

    Example:
        >>> list(track([1e-3, 1e-4], "scales"))
        [0.001, 0.0001]
    """
    heard = _heard.get() or _Heard()
    depth = len(heard.parts)
    try:
        heard.report_progress(0, len(items), unit)
        for number, item in enumerate(items):
            heard.parts[depth:] = [(number, len(items), unit)]
            yield item
            del heard.parts[depth:]
            heard.report_progress(number + 1, len(items), unit)
    finally:
        del heard.parts[depth:]
