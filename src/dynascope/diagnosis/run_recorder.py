"""The engine of recorders: measures a training run on a schedule and writes the rows of its record."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dynascope.diagnosis.loss_window import LossWindow
from dynascope.diagnosis.measurements.kernel import as_numpy
from dynascope.diagnosis.model_reader import ModelReader
from dynascope.diagnosis.plan import plan_of
from dynascope.diagnosis.probe import Need, Probe
from dynascope.diagnosis.probe_runner import ProbeRunner
from dynascope.diagnosis.record_labels import logged_name, record_labels
from dynascope.diagnosis.recorded_run import RecordedRun, require_new
from dynascope.diagnosis.row_variables import DIMENSIONS, NAMES
from dynascope.diagnosis.rows import thinned
from dynascope.diagnosis.schedule import Schedule
from dynascope.diagnosis.snapshot import ForwardPass, Initial, MicroBatches, Snapshot
from dynascope.symmetry.audit import CAUSE_PREFIX
from dynascope.validation import require

__all__ = ["RunRecorder"]


class RunRecorder:
    """Measures a training run on a schedule and writes the measurements to a growing record.

    Args:
        reader: Reads the model.
        path: The folder of the record.
        probes: The probes to run.
        schedule: The schedule of all probes that have no schedule of their own.
        max_overhead: See `ProbeRunner`.
        strict: See `ProbeRunner`; losses that are not finite and missing gradients also raise an error.
        resume: The step of the checkpoint from which an interrupted run continues; None for a new run.
        first_step: The step of the first snapshot of a new run.
        verbose: Whether to print the plan to standard error.
        learning_rates: The initial learning rates.
        groups: The parameter group of each weight; −1 for weights outside all groups.
        attributes: Metadata of the record.

    Attributes:
        step: Number of steps so far.
        epoch: Number of finished epochs.
        plan: A sentence that states the memory and time that the record requires.
    """

    def __init__(
        self,
        reader: ModelReader,
        path: str | PathLike[str],
        *,
        probes: Sequence[Probe],
        schedule: Schedule,
        max_overhead: float | None,
        strict: bool,
        resume: int | None,
        first_step: int,
        verbose: bool,
        learning_rates: Sequence[float],
        groups: Sequence[int],
        attributes: Mapping[str, Any],
    ):
        if resume is None:
            require_new(Path(path))  # before the first measurement, which may take long
        self._reader, self._schedule = reader, schedule
        self._runner = ProbeRunner(probes, max_overhead=max_overhead, strict=strict)
        self._losses, self._owed = LossWindow(), set[str]()
        self._initial: Initial | None = None
        self._diverged, self._groups = False, len(learning_rates)
        self._before: dict[str, Any] | None = None
        self._micro_batches: MicroBatches | None = None
        self.step, self.epoch, self._open = first_step if resume is None else resume, 0, True
        self._started = time.monotonic()

        snapshot = self._snapshot(None)
        with reader.unchanged():
            first = self._runner.first(snapshot)
            if reader.compiles:  # The second measurement shows how long measurements take once they are compiled.
                self._runner.first(self._snapshot(None))
            reads_layers = self._needs("activations", "features", "outputs")
            forward = snapshot.forward if reads_layers else ForwardPass(None, {}, {})
            initial = self._initial_of(snapshot, forward)
            sizes = reader.sizes(forward)
        self._dimensions = DIMENSIONS | {name: dimensions for name, (dimensions, _) in first.items()}
        names = [probe.name for probe in self._runner.probes]
        require(
            names,
            "no probe can measure this model",
            argument="preset",
            remedy="read the warnings for the reasons, or pass strict=True to raise the first error",
        )
        self._labels = record_labels(snapshot.weights, forward, names, len(learning_rates), first)
        seconds = dict.fromkeys((each.name for each in self._runner.probes), 0.0)
        self._latest = self._losses.take() | self._row(learning_rates, seconds)
        self._latest |= {name: values for name, (_, values) in first.items()}
        self.plan = plan_of(self._runner, schedule, sizes, self._latest.values(), updates=self._needs("update"))
        if resume is None:
            self._initial = initial
            self._run = RecordedRun.create(
                Path(path),
                self.step,
                {name: (self._dimensions[name], np.asarray(value)) for name, value in self._latest.items()},
                {**self._labels, "parameter_group": ("parameter", list(groups))},
                initial,
                names=NAMES | {name: each for probe in self._runner.probes for name, each in probe.names.items()},
                attributes={
                    **attributes,
                    "schedule": str(schedule),
                    "probes": json.dumps({each.name: each.description for each in self._runner.probes}),
                },
            )
        else:
            self._run, found, last = RecordedRun.resume(Path(path), resume, self._latest)
            self._initial = dataclasses.replace(found, weights=reader.restored(found.weights))
            unchanged = (np.array_equal(as_numpy(snapshot.weights[name]), each) for name, each in found.weights.items())
            if resume > 0 and all(unchanged):
                self._runner.note(
                    f"resume={resume}, but the model still has its initial weights; load the weights of the checkpoint "
                    "before you create the recorder"
                )
            self.epoch, self._started = int(last["epoch"]), self._started - float(last["seconds"])
        self._kept_warnings = 0
        self._keep_warnings()
        self._measured_at = self.step
        self._prepare_next_row()
        if verbose:
            print(f"dynascope: {self.plan}", file=sys.stderr)

    def advance(self, loss: Any, learning_rates: Sequence[float]) -> bool:
        """Count one step of the optimiser, and measure if a probe is due.

        Args:
            loss: The loss of the step; None if unknown.
            learning_rates: The current learning rates.

        Returns:
            Whether a row was measured.
        """
        self._require_open()
        self.step += 1
        if loss is not None:
            self._losses.add(loss)
        measured = self._measure_if_due(None, learning_rates)
        self._prepare_next_row()
        return measured

    @property
    def next_is_due(self) -> bool:
        """Whether the next step is measured."""
        return self._schedule.due(self.step + 1, None)

    def keep_micro_batches(self, batches: MicroBatches) -> None:
        """Keep the gradients of the micro-batches of the current step for its row."""
        self._micro_batches = batches

    def add_loss(self, loss: Any) -> None:
        """Add a loss to the next row."""
        self._losses.add(loss)

    def skip_to(self, step: int, learning_rates: Sequence[float]) -> bool:
        """Measure the weights of a later step; returns whether a row was measured."""
        self._require_open()
        require(
            step > self.step,
            f"step is {step}, but the record has reached step {self.step}",
            argument="step",
            value=step,
            remedy="give a later step",
        )
        self.step, self._before = step, None
        self._measure(learning_rates, None, lambda probe: True)
        return True

    def end_epoch(self, learning_rates: Sequence[float]) -> bool:
        """Count one epoch, and measure if a probe is due; returns whether a row was measured."""
        self._require_open()
        self.epoch += 1
        return self._measured_at < self.step and self._measure_if_due(self.epoch, learning_rates)

    def close(self, learning_rates: Sequence[float]) -> None:
        """Measure the last step unless it was measured, write all rows, and release the record."""
        if not self._open:
            return
        self._open = False
        try:
            if self._measured_at < self.step:
                self._measure(learning_rates, None, lambda probe: True, limited=False)
        finally:
            self._keep_warnings()
            self._run.close()
            self._initial = self._before = None

    def scalars(self) -> dict[str, float]:
        """Return the finite values of the latest row, with names such as `weight_norm/layer.weight`."""
        found = {}
        for name, values in self._latest.items():
            # Neither how the recorder spent its time, nor single examples, nor the many statistics for the causes of
            # broken laws.
            if {"probe", "example"} & {*self._dimensions[name]} or name.startswith(CAUSE_PREFIX):
                continue
            labels = [self._labels[dimension] for dimension in self._dimensions[name]]
            for place in np.ndindex(*np.shape(values)):
                value = float(np.asarray(values)[place])
                if np.isfinite(value):
                    parts = [str(each[k]) for each, k in zip(labels, place, strict=True)]
                    found[logged_name("/".join([name, *parts]))] = value
        return found

    def flush(self) -> None:
        """Write the rows that are still in memory."""
        self._run.flush()

    def read(self) -> xr.Dataset:
        """Return the record so far."""
        return self._run.read()

    def _require_open(self) -> None:
        require(
            self._open,
            "the recorder is closed",
            argument="recorder",
            remedy="call step before close, or within the with statement",
        )

    def _measure_if_due(self, epoch: int | None, learning_rates: Sequence[float]) -> bool:
        # A probe with its own schedule runs in the first row after a step of this schedule.
        self._owed |= {
            probe.name for probe in self._runner.probes if probe.schedule and probe.schedule.due(self.step, epoch)
        }
        row_due = self._schedule.due(self.step, epoch)
        if row_due:
            needed = self._needs("gradients")
            gradients = self._reader.gradients() if needed else None
            self._measure(learning_rates, gradients, lambda probe: not probe.schedule or probe.name in self._owed)
            if epoch is None and needed:
                self._note_mistakes(gradients)
            self._keep_warnings()
        else:
            self._run.flush_if_due()
        return row_due

    def _note_mistakes(self, gradients: Mapping[str, Any] | None) -> None:
        """Warn if the latest row shows that `step` is called at the wrong place in the training loop."""
        missing = gradients is None or self._latest.get("total_gradient_norm") == 0
        if missing and self._reader.needs_gradients and not self._diverged:
            self._runner.note(
                "there are no gradients, probably because they were set to zero; call step before zero_grad()"
            )
        moving = not missing and np.max(self._latest["learning_rate"], initial=0.0) > 0
        if moving and self._latest.get("total_update_norm") == 0:
            self._runner.note(f"step {self.step} did not change the weights; call step after optimizer.step()")

    def _measure(
        self,
        learning_rates: Sequence[float],
        gradients: Mapping[str, Any] | None,
        due: Callable[[Probe], bool],
        *,
        limited: bool = True,
    ) -> None:
        """Measure the due probes and add a row; nothing is measured if the loss is not finite."""
        losses = self._losses.take()
        finite = losses["loss_count"] == 0 or bool(np.isfinite(losses["mean_loss"]))
        with self._reader.unchanged():
            values, seconds = self._runner.row(
                self._snapshot(gradients), lambda probe: finite and due(probe), limited=limited
            )
        self._latest = losses | self._row(learning_rates, seconds) | values
        self._run.append(self.step, self._latest)
        self._measured_at = self.step
        self._owed -= set(seconds)
        if not finite and not self._diverged:
            self._diverged = True
            self._run.flush()
            self._runner.note(f"the loss is not finite at or before step {self.step}")

    def _row(self, learning_rates: Sequence[float], seconds: Mapping[str, float]) -> dict[str, Any]:
        """Return the variables of a row that are neither losses nor measured by probes."""
        names = [probe.name for probe in self._runner.probes]
        return {
            "learning_rate": self._rates(learning_rates),
            "epoch": float(self.epoch),
            "seconds": time.monotonic() - self._started,
            "measured": np.array([name in seconds for name in names], bool),
            "probe_seconds": np.array([seconds.get(name, 0.0) for name in names]),
        }

    def _keep_warnings(self) -> None:
        """Write new warnings to the folder of the record."""
        notes = self._runner.notes
        if len(notes) > self._kept_warnings:
            self._run.keep_warnings(notes)
            self._kept_warnings = len(notes)

    def _rates(self, learning_rates: Sequence[float]) -> np.ndarray:
        """Return the learning rates of the initial parameter groups."""
        rates = np.array(learning_rates, float)
        if len(rates) != self._groups:
            self._runner.note("the number of parameter groups has changed; only the initial groups are recorded")
        return np.pad(rates, (0, max(0, self._groups - len(rates))), constant_values=np.nan)[: self._groups]

    def _prepare_next_row(self) -> None:
        """Copy the weights if the next row requires the weights before the step, and discard the micro-batches."""
        due = self._needs("update") and self.next_is_due
        self._before = self._reader.copied_weights() if due else None
        self._micro_batches = None

    def _snapshot(self, gradients: Mapping[str, Any] | None) -> Snapshot:
        reader = self._reader
        return Snapshot(
            weights=reader.weights(),
            initial=self._initial,
            before=self._before,
            gradients=gradients,
            targets=reader.targets,
            compute_forward=reader.forward,
            compute_kernel=reader.kernel,
            note=self._runner.note,
            micro_batches=self._micro_batches,
            compute_exact_kernel=reader.exact_kernel,
            compute_curvatures=reader.curvatures if reader.knows_loss else None,
            compute_batches=reader.batches if reader.knows_loss else None,
            units_last=reader.units_last,
            compute_loss=reader.loss if reader.knows_loss else None,
            flipped=reader.flipped,
        )

    def _needs(self, *needs: Need) -> bool:
        return any(need in probe.needs for probe in self._runner.probes for need in needs)

    def _initial_of(self, snapshot: Snapshot, forward: ForwardPass) -> Initial:
        kernel = as_numpy(snapshot.kernel) if self._needs("kernel") else None
        exact_kernel = as_numpy(self._reader.exact_kernel()) if self._needs("exact_kernel") else None
        active = {name: as_numpy(thinned(z) > 0) for name, z in forward.preactivations.items()}
        return Initial(self._reader.copied_weights(), active, kernel, exact_kernel)
