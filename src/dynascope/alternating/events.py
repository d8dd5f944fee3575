"""What happens in an alternating gradient flow, and which events make one jump."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

__all__ = ["Event", "Jumps", "listed"]


@dataclasses.dataclass
class Event:
    """One activation, or one departure of the active neurons from a saddle, with the cost phase that follows it."""

    time: float
    loss: float
    growth: float
    activated: list[int]
    returned: list[int]
    direction: np.ndarray
    unstable_rate: float = 0.0


@dataclasses.dataclass
class Jumps:
    """Events in the order of time, grouped into jumps.

    Attributes:
        tie: Events within this many e-folds of growth after the first of a jump belong to it.
        least_drop: And so does one after which the loss is not lower by at least this much.
        least_growth: Growth rates below are none.
        unit: Unit of accelerated time, if growth is exponential, so that an e-fold may be judged by all the time
            before; None for the blow-up of higher degrees.
        groups: The events of each jump.
    """

    tie: float
    least_drop: float
    least_growth: float
    unit: float | None
    groups: list[list[Event]] = dataclasses.field(default_factory=list)

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def events(self) -> list[Event]:
        """All of them."""
        return [event for group in self.groups for event in group]

    def follows(self, event: Event) -> bool:
        """Whether it follows the last jump within the tie, in e-folds of its neuron."""
        if not self.groups:
            return False
        e_fold = 1 / max(event.growth, self.least_growth)
        if self.unit is not None:
            e_fold = min(e_fold, event.time / self.unit)
        return bool(event.time - self.groups[-1][0].time < self.tie * e_fold)

    def append(self, event: Event, loss_before: float) -> None:
        """Count the event as part of the last jump, or as the first of another."""
        if self.groups and (self.follows(event) or loss_before - event.loss <= self.least_drop):
            self.groups[-1].append(event)
        else:
            self.groups.append([event])


def listed(numbers: Any) -> str:
    """The first eight numbers, and how many more."""
    shown = ", ".join(str(int(i)) for i in numbers[:8])
    return shown + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")
