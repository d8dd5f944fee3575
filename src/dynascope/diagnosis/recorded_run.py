"""The growing record of a training run: one row for each measured step."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from filelock import FileLock, Timeout

from dynascope.diagnosis.measurements.kernel import as_numpy
from dynascope.diagnosis.snapshot import Initial
from dynascope.errors import InputError
from dynascope.results import GrowingRecord
from dynascope.results.growing_layout import require_new_folder
from dynascope.validation import require

__all__ = ["CONVENTION", "RecordedRun", "initial_weights", "recorder_warnings", "require_new"]

CONVENTION = "loss = loss of the training loop; step = number of optimiser steps"
_INITIAL = "initial.npz"
_WEIGHTS = "weights/"
_LOCK = "writer.lock"
_WARNINGS = "warnings.txt"


class RecordedRun:
    """A growing record of measurements, the initial snapshot of the run, and a lock against a second writer.

    The operating system releases the lock when the process ends, even after a crash.

    Args:
        path: The folder.
        lock: The acquired lock.
        record: The growing record in the folder.
    """

    def __init__(self, path: Path, lock: FileLock, record: GrowingRecord):
        self.path, self._lock, self._record = path, lock, record

    @classmethod
    def create(
        cls,
        path: Path,
        step: int,
        row: Mapping[str, tuple[Sequence[str], np.ndarray]],
        labels: Mapping[str, Sequence[Any]],
        initial: Initial,
        *,
        names: Mapping[str, tuple[str, str]],
        attributes: Mapping[str, Any],
    ) -> RecordedRun:
        """Create the record with its first row.

        Args:
            path: The folder to create.
            step: The step of the first row.
            row: The dimensions and values of each variable in the first row.
            labels: The labels of each dimension.
            initial: The initial snapshot.
            names: The long name and the units of each variable.
            attributes: Metadata.

        Raises:
            InputError: If the path exists, or if its parent does not.
        """
        require_new(path)
        variables = {name: (["step", *dimensions], values.dtype) for name, (dimensions, values) in row.items()}
        # The folder is made elsewhere and moved, so a killed process leaves a whole record or none.
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
            new = Path(folder) / path.name
            with GrowingRecord.create(
                new,
                {"step": (["step"], int), **variables},
                axis="step",
                coords=labels,
                names=names,
                attrs={"convention": CONVENTION, "loss_function": "loss of the training loop", **attributes},
            ) as record:
                record.append({"step": step, **{name: values for name, (_, values) in row.items()}})
            _save_initial(new / _INITIAL, initial)
            new.rename(path)
        return cls(path, _acquired(path), GrowingRecord.open(path))

    @classmethod
    def resume(
        cls, path: Path, step: int, row: Mapping[str, Any]
    ) -> tuple[RecordedRun, Initial, dict[str, np.ndarray]]:
        """Open the record of an interrupted run, and remove all rows after the step of a checkpoint.

        Args:
            path: The folder.
            step: The step of the checkpoint.
            row: The values of a row of the continued run, for comparison with the record.

        Returns:
            The run, its initial snapshot, and the values of its last remaining row.

        Raises:
            InputError: If the path is not the record of a run, belongs to another model or other probes, or has no row
                up to the step; or if another process writes to it.
        """
        require(
            (path / _INITIAL).is_file(),
            f"{str(path)!r} is not the record of a training run",
            argument="path",
            value=str(path),
            remedy="give the folder of an interrupted recording, or omit resume to start a new record",
        )
        lock = _acquired(path)
        try:
            record = GrowingRecord.open(path)
            found = record.read()
            shapes = {str(name): values.shape[1:] for name, values in found.data_vars.items() if "step" in values.dims}
            require(
                shapes == {name: np.shape(values) for name, values in row.items()},
                f"{str(path)!r} is the record of another model or of other probes",
                argument="path",
                value=str(path),
                remedy="continue with the same model, optimizer, reference batch and preset, or choose another path",
            )
            rows = int(np.searchsorted(found["step"].values, step, side="right"))
            require(
                rows > 0,
                f"{str(path)!r} has no row up to step {step}",
                argument="resume",
                value=step,
                remedy="give a later step, or start a new record at another path",
            )
            record.truncate(rows)
            last = {str(name): found[name].values[rows - 1] for name in shapes}
            return cls(path, lock, record), _load_initial(path / _INITIAL), last
        except BaseException:
            lock.release()
            raise

    def append(self, step: int, values: Mapping[str, Any]) -> None:
        """Add one row."""
        self._record.append({"step": step, **values})

    def keep_warnings(self, messages: Sequence[str]) -> None:
        """Write the warnings that are not yet in the folder, one per line."""
        known = recorder_warnings(self.path)
        with (self.path / _WARNINGS).open("a", encoding="utf-8") as file:
            file.writelines(f"{each}\n" for each in map(_one_line, messages) if each not in known)

    def read(self) -> xr.Dataset:
        """Return the rows so far."""
        return self._record.read()

    def flush(self) -> None:
        """Write the rows that are still in memory."""
        self._record.flush()

    def flush_if_due(self) -> None:
        """Write the rows that are still in memory if enough time has passed since the last write."""
        self._record.flush_if_due()

    def close(self) -> None:
        """Write the rows that are still in memory, and release the lock."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._lock.release)
            self._record.close()


def require_new(path: Path) -> None:
    """Raise `InputError` if the path exists, if its parent does not, or if another recorder writes to it."""
    if (path / _LOCK).is_file():
        _acquired(path).release()  # raises if a recorder is running
    require(
        not os.path.lexists(path),
        f"{str(path)!r} exists",
        argument="path",
        value=str(path),
        remedy="choose another path, or continue this record from a checkpoint with resume=STEP",
    )
    require_new_folder(path)


def initial_weights(path: Path) -> dict[str, np.ndarray]:
    """Return the weights in the first row of the record in a folder, by name; empty if they are not available."""
    if not (path / _INITIAL).is_file():
        return {}
    with np.load(path / _INITIAL, allow_pickle=False) as arrays:
        return {name.removeprefix(_WEIGHTS): arrays[name] for name in arrays.files if name.startswith(_WEIGHTS)}


def recorder_warnings(path: Path) -> tuple[str, ...]:
    """Return the warnings of the recorder that wrote a folder; empty if there are none."""
    file = path / _WARNINGS
    return tuple(file.read_text("utf-8").splitlines()) if file.is_file() else ()


def _one_line(message: str) -> str:
    return " ".join(message.split())


def _acquired(path: Path) -> FileLock:
    lock = FileLock(path / _LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(
            f"another recorder writes to {str(path)!r}",
            argument="path",
            value=str(path),
            remedy="close the other recorder first, or choose another path",
        ) from None
    return lock


def _save_initial(path: Path, initial: Initial) -> None:
    arrays = {f"{_WEIGHTS}{name}": as_numpy(each) for name, each in initial.weights.items()}
    for name, active in initial.active.items():
        arrays[f"active/{name}"] = np.packbits(active)
        arrays[f"shape/{name}"] = np.array(active.shape)
    kernels = {"kernel": initial.kernel, "exact_kernel": initial.exact_kernel}
    arrays |= {name: each for name, each in kernels.items() if each is not None}
    np.savez(path, **arrays)  # pyright: ignore[reportArgumentType]


def _load_initial(path: Path) -> Initial:
    with np.load(path, allow_pickle=False) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    active = {}
    for name, bits in _part(found, "active/"):
        shape = tuple(found[f"shape/{name}"])
        active[name] = np.unpackbits(bits, count=int(np.prod(shape))).astype(bool).reshape(shape)
    return Initial(dict(_part(found, _WEIGHTS)), active, found.get("kernel"), found.get("exact_kernel"))


def _part(arrays: Mapping[str, np.ndarray], prefix: str) -> Iterator[tuple[str, np.ndarray]]:
    return ((name.removeprefix(prefix), each) for name, each in arrays.items() if name.startswith(prefix))
