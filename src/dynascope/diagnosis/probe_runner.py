"""Runs probes on snapshots of a training run, within a time budget."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from dynascope.diagnosis.measurements.kernel import as_numpy
from dynascope.diagnosis.probe import Probe
from dynascope.diagnosis.snapshot import Snapshot
from dynascope.errors import InputError
from dynascope.validation import shown_error

__all__ = ["ProbeRunner", "RecorderWarning"]

# A short run is worth a few seconds of measurements.
_FREE_SECONDS = 10.0


class RecorderWarning(UserWarning):
    """Issued if a recorder cannot measure a quantity. Each case is reported once, and training continues."""


class ProbeRunner:
    """Runs probes on snapshots, skips expensive ones that exceed the time budget, and reports failing ones once.

    Args:
        probes: The probes. Those that fail or measure nothing on the first snapshot are dropped.
        max_overhead: The largest share of the run's time that measurements may take; None for no limit. The first ten
            seconds of measurements, the first snapshot, the next run of each probe and probes with `limited=False` are
            not limited. Half of the time is reserved for cheaper probes, so an expensive probe cannot use up the time
            of all others.
        strict: Whether a failing probe raises its error instead of a warning.

    Attributes:
        probes: The probes that measured a variable on the first snapshot.
        expected: The expected duration of each probe in seconds, which is the duration of its last measurement.
        notes: The messages of all warnings.
    """

    def __init__(self, probes: Sequence[Probe], *, max_overhead: float | None, strict: bool):
        self.probes, self._max_overhead, self._strict = list(probes), max_overhead, strict
        self.expected: dict[str, float] = {}
        self._layout: dict[str, dict[str, tuple[list[str], np.ndarray]]] = {}
        self.notes: list[str] = []
        self._started = time.monotonic()
        self._spent = {probe.name: 0.0 for probe in probes}

    def first(self, snapshot: Snapshot) -> dict[str, tuple[list[str], np.ndarray]]:
        """Run all probes on the first snapshot, and return the dimensions and values of each variable."""
        for probe in list(self.probes):
            values = self._run(probe, snapshot)
            if not values:  # It failed, or has nothing to measure in this model.
                self.probes.remove(probe)
            else:
                self._layout[probe.name] = values
        self._spent = dict.fromkeys(self._spent, 0.0)  # The first snapshot is always measured.
        return {name: each for values in self._layout.values() for name, each in values.items()}

    def row(
        self, snapshot: Snapshot, due: Callable[[Probe], bool], *, limited: bool = True
    ) -> tuple[dict[str, np.ndarray], dict[str, float]]:
        """Run the probes that are due and, if `limited`, within the budget.

        Returns:
            The values of all variables, NaN for probes that did not run; and the duration of each probe that ran.
        """
        row, seconds = {}, {}
        for probe in self.probes:
            layout = self._layout[probe.name]
            values = None
            if due(probe) and (not limited or self._affordable(probe)):
                values = self._run(probe, snapshot)
                if values is not None:
                    seconds[probe.name] = self.expected[probe.name]
            for name, (_, like) in layout.items():
                row[name] = np.full_like(like, np.nan) if values is None or name not in values else values[name][1]
        return row, seconds

    def note(self, message: str) -> None:
        """Warn once about something that cannot be measured; raise if strict."""
        if self._strict:
            raise InputError(message, argument="strict", value=True, remedy="omit strict to continue with a warning")
        if message not in self.notes:
            self.notes.append(message)
            warnings.warn(message, RecorderWarning, stacklevel=4)

    def _affordable(self, probe: Probe) -> bool:
        # The first run of a probe also sets it up; the second one shows how long it takes.
        if self._max_overhead is None or not probe.limited or self._spent[probe.name] == 0:
            return True
        budget = _FREE_SECONDS + self._max_overhead * (time.monotonic() - self._started)
        seconds = self.expected[probe.name]
        spent = sum(self._spent[name] for name, each in self.expected.items() if each <= seconds)
        # Half of the budget is left to probes that are cheaper.
        return spent + seconds <= budget / 2 and sum(self._spent.values()) + seconds <= budget

    def _run(self, probe: Probe, snapshot: Snapshot) -> dict[str, tuple[list[str], np.ndarray]] | None:
        started = time.monotonic()
        try:
            found = probe.measure(snapshot)
            return {name: (list(dimensions), _floating(values)) for name, (dimensions, values) in found.items()}
        except Exception as error:  # A probe may fail in any way on a user's model, which must not stop training.
            if self._strict:
                raise
            self.note(f"the probe {probe.name!r} is omitted, because {shown_error(error)}")
            return None
        finally:
            self.expected[probe.name] = time.monotonic() - started
            self._spent[probe.name] += self.expected[probe.name]


def _floating(values: object) -> np.ndarray:
    array = as_numpy(values)
    return array if array.dtype.kind == "f" else array.astype(np.float64)
