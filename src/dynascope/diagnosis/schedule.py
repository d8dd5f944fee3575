"""Schedules: the steps of a training run at which measurements are taken."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from dynascope.validation import require, require_kind, require_whole_numbers, shown
from dynascope.validation.bounded_scalars import PositiveInt

__all__ = ["AtSteps", "Every", "EveryEpoch", "LogSpaced", "Schedule", "as_schedule"]


@runtime_checkable
class Schedule(Protocol):
    """Decides at which steps a training run is measured. The initial weights, step 0, are always measured."""

    def due(self, step: int, epoch: int | None) -> bool:
        """Return whether to measure after this step; `epoch` is the number of the epoch that it finishes, or None."""
        ...


@dataclasses.dataclass(frozen=True)
class Every:
    """Measure every n-th step.

    Example:
        >>> [step for step in range(10) if Every(3).due(step, None)]
        [0, 3, 6, 9]
    """

    steps: int

    def __post_init__(self):
        require_kind(PositiveInt, steps=self.steps)

    def due(self, step: int, epoch: int | None) -> bool:
        """Return whether to measure after this step."""
        return step % self.steps == 0


@dataclasses.dataclass(frozen=True)
class LogSpaced:
    """Measure at logarithmically spaced steps: the integers nearest to 10^(k/n).

    Attributes:
        per_decade: n, the number of measurements per decade of steps.

    Example:
        >>> [step for step in range(101) if LogSpaced(4).due(step, None)]
        [0, 1, 2, 3, 6, 10, 18, 32, 56, 100]
    """

    per_decade: int = 16

    def __post_init__(self):
        require_kind(PositiveInt, per_decade=self.per_decade)

    def due(self, step: int, epoch: int | None) -> bool:
        """Return whether to measure after this step."""
        if step <= 1:
            return True
        nearest = round(self.per_decade * math.log10(step))
        return any(round(10 ** (k / self.per_decade)) == step for k in (nearest - 1, nearest, nearest + 1))


@dataclasses.dataclass(frozen=True)
class AtSteps:
    """Measure at the listed steps.

    Example:
        >>> [step for step in range(100) if AtSteps((5, 50)).due(step, None)]
        [5, 50]
    """

    steps: tuple[int, ...]

    def due(self, step: int, epoch: int | None) -> bool:
        """Return whether to measure after this step."""
        return step in self.steps


@dataclasses.dataclass(frozen=True)
class EveryEpoch:
    """Measure at the end of every n-th epoch, when the training loop calls `recorder.end_epoch()`.

    Example:
        >>> EveryEpoch(2).due(300, 2), EveryEpoch(2).due(450, 3), EveryEpoch(2).due(301, None)
        (True, False, False)
    """

    epochs: int = 1

    def __post_init__(self):
        require_kind(PositiveInt, epochs=self.epochs)

    def due(self, step: int, epoch: int | None) -> bool:
        """Return whether to measure after this step."""
        return epoch is not None and epoch % self.epochs == 0


def as_schedule(schedule: Schedule | Sequence[int] | int | str) -> Schedule:
    """Return a schedule for the short forms: n for every n steps, "log", "epochs", or a list of steps.

    Raises:
        InputError: If the short form is unknown.

    Example:
        >>> as_schedule(10), as_schedule("log"), as_schedule([1, 2])
        (Every(steps=10), LogSpaced(per_decade=16), AtSteps(steps=(1, 2)))
    """
    if isinstance(schedule, Schedule):
        return schedule
    if schedule == "log":
        return LogSpaced()
    if schedule == "epochs":
        return EveryEpoch()
    if isinstance(schedule, int) and not isinstance(schedule, bool):
        return Every(schedule)
    steps = None if isinstance(schedule, str) else np.asarray(schedule)
    require(
        steps is not None and steps.ndim == 1 and steps.size > 0 and steps.dtype.kind in "iuf",
        f"schedule is {shown(schedule)}",
        argument="schedule",
        value=schedule,
        remedy='give a number of steps, "log", "epochs", a list of steps, or a schedule of dynascope.diagnosis',
    )
    assert steps is not None
    require_whole_numbers("schedule", steps)
    return AtSteps(tuple(sorted(int(step) for step in steps)))
