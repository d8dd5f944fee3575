"""Events in an alternating gradient flow, and their grouping into jumps."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

__all__ = ["Event", "Jumps", "listed"]


@dataclasses.dataclass
class Event:
    """An activation, or a departure of the active neurons from a saddle, with the subsequent cost phase.

    Attributes:
        time: Time of the activation or departure.
        loss: Loss after the cost phase.
        growth: Growth rate of the first activated neuron, or rate of the departure.
        activated: Neurons that become active, the largest first.
        returned: Neurons that become dormant again in the cost phase.
        direction: Direction of the first activated neuron at activation, or of the fastest neuron in a departure.
        spent: Direction that the first activated neuron shares with an active one (see `Dormant`); zero if there is
            none.
        unstable_rate: Largest rate at which the active neurons leave the plateau.
        settled: Weights of the first activated neuron on the plateau, orthogonal to `spent`; None if it is dormant
            there, if no neuron was activated, or if its activation is smooth and an active neuron has the same
            function.
    """

    time: float
    loss: float
    growth: float
    activated: list[int]
    returned: list[int]
    direction: np.ndarray
    spent: np.ndarray
    unstable_rate: float = 0.0
    settled: np.ndarray | None = None


@dataclasses.dataclass
class Jumps:
    """Events in chronological order, grouped into jumps.

    Attributes:
        tie: Events within this many e-folds of growth after the first event of a jump are part of the jump.
        least_drop: An event that lowers the loss by at most this much is part of the preceding jump.
        least_growth: Lower bound on growth rates.
        unit: Unit of accelerated time (see `results.time_unit`) if neurons grow exponentially (an e-fold then takes at
            most time/unit); None if the norms diverge at a finite time.
        groups: Events of each jump.
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
        """All events."""
        return [event for group in self.groups for event in group]

    def follows(self, event: Event) -> bool:
        """Whether the event occurs within `tie` e-folds after the start of the last jump."""
        if not self.groups:
            return False
        e_fold = 1 / max(event.growth, self.least_growth)
        if self.unit is not None:
            e_fold = min(e_fold, event.time / self.unit)
        return bool(event.time - self.groups[-1][0].time < self.tie * e_fold)

    def append(self, event: Event, loss_before: float) -> None:
        """Append the event to the last jump, or start a new jump with it."""
        if self.groups and (self.follows(event) or loss_before - event.loss <= self.least_drop):
            self.groups[-1].append(event)
        else:
            self.groups.append([event])


def listed(numbers: Any) -> str:
    """Format the first eight numbers, followed by the count of the others."""
    shown = ", ".join(str(int(i)) for i in numbers[:8])
    return shown + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")
