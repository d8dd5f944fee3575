"""The plan of a recorder: a sentence that states the required memory and time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dynascope.diagnosis.probe import Sizes
from dynascope.diagnosis.probe_runner import ProbeRunner
from dynascope.diagnosis.schedule import EveryEpoch, Schedule
from dynascope.validation import formatted_bytes

__all__ = ["plan_of"]

_STEPS = 10_000


def plan_of(runner: ProbeRunner, schedule: Schedule, sizes: Sizes, values: Iterable[Any], *, updates: bool) -> str:
    """Return a sentence that states the memory and the time that a recorder requires.

    The time is that of the first measurement, or of the second one if the first includes the compilation of the probes.

    Args:
        runner: The probes, after the first snapshot.
        schedule: The schedule of the recorder.
        sizes: The sizes of the model.
        values: The values of the first row.
        updates: Whether the recorder copies the weights before each measured step.
    """
    copies = 2 if updates else 1
    memory = max((probe.cost(sizes).bytes for probe in runner.probes), default=0.0)
    row = sum(np.asarray(each).nbytes for each in values)
    seconds = sum(runner.expected[probe.name] for probe in runner.probes)
    text = (
        f"each row takes up to {seconds:.2g} s and {formatted_bytes(row)}; {copies} "
        f"{'copies' if copies > 1 else 'copy'} of the weights take "
        f"{formatted_bytes(copies * sizes.parameters * sizes.itemsize)}, and measurements up to "
        f"{formatted_bytes(memory)} more."
    )
    if isinstance(schedule, EveryEpoch):
        return text
    rows = sum(schedule.due(step, None) for step in range(_STEPS + 1))
    spent = 0.0
    for probe in runner.probes:
        own = probe.schedule or schedule
        spent += runner.expected[probe.name] * min(rows, sum(own.due(step, None) for step in range(_STEPS + 1)))
    return f"{text} For {_STEPS} steps: {rows} rows, {spent:.2g} s and {formatted_bytes(rows * row)}."
