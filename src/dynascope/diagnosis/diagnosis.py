"""The diagnosis of a training run: lines, summary and page."""

from __future__ import annotations

import dataclasses
import math
import re
import textwrap
from collections.abc import Iterable
from typing import Any

from dynascope.diagnosis.line import Line
from dynascope.results import Observation

__all__ = ["Diagnosis", "summary_of"]

_MOST_SENTENCES = 7
_WIDTH = 88  # columns of a printed diagnosis


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Observation):
    """What theory says of a training run.

    Print the diagnosis for its summary and what to do. `to_html` writes the page, and `to_json` returns plain values
    for scripts.

    Attributes:
        lines: One line for each question, with the measured number, the threshold, the theory and what to do.
    """

    lines: tuple[Line, ...] = ()

    @property
    def summary(self) -> tuple[str, ...]:
        """The most telling answers, in at most seven sentences."""
        return self.findings

    @property
    def actions(self) -> tuple[str, ...]:
        """What to do, the most urgent first, each after the topic of its line."""
        return tuple(f"{each.topic}: {each.action}" for each in _ordered(self.lines) if each.action)

    def state(self, topic: str) -> str:
        """Return the answer to one question, such as "unstable"; empty if there is no such line.

        Args:
            topic: The topic of the line, such as "stability".
        """
        return next((each.state for each in self.lines if each.topic == topic), "")

    def to_json(self) -> dict[str, Any]:
        """Return title, summary, actions and all lines as plain values; numbers that are not finite become None."""
        lines = [
            {
                name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in dataclasses.asdict(each).items()
            }
            for each in self.lines
        ]
        return {"title": self.title, "summary": list(self.summary), "actions": list(self.actions), "lines": lines}

    def as_text(self, *, width: int) -> str:
        """Format title, summary and what to do as text.

        Args:
            width: Width in columns.
        """
        lines = [self.title, "", *self.summary]
        if self.actions:
            lines += ["", "What to do:", *(f"- {each}" for each in self.actions)]
        unknown = [f"- {each.topic}: {each.sentence}" for each in self.lines if not each.is_answer]
        if unknown:
            lines += ["", "No answer:", *unknown]
        wrapped = (textwrap.fill(each, width, subsequent_indent="  " * each.startswith("- ")) for each in lines)
        return "\n".join(wrapped)

    def __str__(self) -> str:
        return self.as_text(width=_WIDTH)

    def __repr__(self) -> str:
        states = ", ".join(f"{each.topic}: {each.state}" for each in self.lines if each.is_answer)
        return f"<Diagnosis {self.title}: {states}>"


def summary_of(lines: Iterable[Line]) -> tuple[str, ...]:
    """Return the sentences of the most telling answers, at most seven in total.

    Example:
        >>> summary_of([Line("a", "fine", "All is fine."), Line("b", "broken", "It broke.", weight=3)])
        ('It broke.', 'All is fine.')
    """
    found, left = [], _MOST_SENTENCES
    for line in _ordered(lines):
        count = len(re.findall(r"[.!?](?=\s|$)", line.sentence))
        if line.is_answer and line.weight > 0 and count <= left:
            found.append(line.sentence)
            left -= count
    return tuple(found)


def _ordered(lines: Iterable[Line]) -> list[Line]:
    return sorted(lines, key=lambda each: -each.weight)
