"""A line on a terminal that says how far something is, how long it has taken and will take."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.progress_bar import ProgressBar
from rich.table import Column
from rich.text import Text

from dynascope.flows.progress import progress_listener

__all__ = ["Pace", "drawn"]

_SECONDS = 2  # before which nothing is worth a bar


class Pace:
    """How long what is planned has taken, and will still take.

    The pace is that since something was first told, so that compiling does not count. It is forgotten when all is done
    and when what is done falls: what comes then is another computation.

    Args:
        clock: Seconds now.

    Attributes:
        done: How much of it is done.
        planned: How much there is to do; zero where nothing is told.
        unit: What is counted.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self.clock, self.start = clock, clock()
        self.done, self.planned, self.unit = 0.0, 0.0, ""
        self._first = self._last = (0.0, 0.0)

    def hear(self, done: float, planned: float, unit: str) -> None:
        """Take note of what is done."""
        now = self.clock()
        if done < self.done or (planned, unit) != (self.planned, self.unit):
            self._first = now, done
        self._last = now, done
        self.done, self.planned, self.unit = (done, planned, unit) if done < planned else (0.0, 0.0, "")

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self.clock() - self.start

    @property
    def left(self) -> float | None:
        """Seconds until all is done, or None where nothing tells."""
        (began, first), (heard, done) = self._first, self._last
        if not self.planned or done <= first or heard <= began:
            return None
        return max((self.planned - done) * (heard - began) / (done - first) - (self.clock() - heard), 0.0)


class _Part(ProgressColumn):
    """A part of the line which appears when there is something that takes long enough."""

    max_refresh = None

    def __init__(self, pace: Pace, show: Callable[[Pace], RenderableType]):
        super().__init__(Column(no_wrap=True))
        self.pace, self.show = pace, show

    def render(self, task: Task) -> RenderableType:
        return self.show(self.pace) if self.pace.elapsed >= _SECONDS else Text("")


@contextlib.contextmanager
def drawn(text: str) -> Iterator[None]:
    """Draw the line on standard error while something is done; afterwards it says only how long that took."""
    console, pace = Console(stderr=True), Pace()
    line = Progress(
        SpinnerColumn(),
        TextColumn(escape(text), table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
        _Part(pace, _bar),
        _Part(pace, _count),
        _Part(pace, _times),
        console=console,
        transient=True,
        expand=True,
    )
    line.add_task("")
    with line, progress_listener(pace.hear, announced=lambda said: console.print(escape(said), highlight=False)):
        yield
    console.print(f"[dim]{escape(text)} … {pace.elapsed:.1f} s", highlight=False)


def _bar(pace: Pace) -> RenderableType:
    if not pace.planned:
        return Text("")
    return ProgressBar(total=pace.planned, completed=pace.done, width=16)


def _count(pace: Pace) -> Text:
    return Text(f"{int(pace.done)}/{int(pace.planned)} {pace.unit}" if pace.planned else "")


def _times(pace: Pace) -> Text:
    left = pace.left
    return Text(_clock(pace.elapsed) + ("" if left is None else f", {_clock(left)} left"), style="dim")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
