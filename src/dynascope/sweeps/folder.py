"""The folder of a sweep: its manifest, its lock, its journal and its store."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import filelock
import numpy as np

from dynascope.errors import InputError
from dynascope.results.whole_files import written_beside
from dynascope.sweeps.cells import Cell, blocks, chunk_shape, new_cells
from dynascope.sweeps.hypercube import Hypercube
from dynascope.sweeps.journal import Journal
from dynascope.validation import require

__all__ = ["MANIFEST", "STORE", "Folder", "read_manifest"]

MANIFEST, STORE = "manifest.json", "sweep.zarr"
_JOURNAL, _LOCK = "journal.jsonl", ".lock"
_FORMAT = 1
_CHANGED = "choose another folder, or delete this one"


class Folder:
    """A sweep on disk, which one process at a time computes.

    Finished cells are appended to the journal at once, and written to the store when `compact` is called. When the
    folder is opened again, the journal is replayed first.

    Attributes:
        path: The folder.
        manifest: The run, the axes, the shapes that the grid has had, and the sizes of chunks and blocks.
        store: The store.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any], axes: Mapping[str, Sequence[Any]], block: int):
        """Create the folder, or open it to continue.

        Raises:
            InputError: Another process computes this sweep; the folder contains something else, or a sweep of another
                run, version or grid; or it is not writable.
        """
        self.path = path
        try:
            self._open(identity, axes, block)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            remedy = "free some space, or choose a folder that is writable"
            problem = f"the sweep cannot be stored in {path} ({reason})"
            raise InputError(problem, argument="out", value=str(path), remedy=remedy) from error

    def _open(self, identity: Mapping[str, Any], axes: Mapping[str, Sequence[Any]], block: int) -> None:
        file = self.path / MANIFEST
        strange = self.path.exists() and not file.exists() and {each.name for each in self.path.iterdir()} - {_LOCK}
        problem, remedy = f"{self.path} exists and is not the folder of a sweep", "choose another folder"
        require(not strange, problem, argument="out", value=str(self.path), remedy=remedy)
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = filelock.FileLock(self.path / _LOCK)
        try:
            self._lock.acquire(timeout=0)
        except filelock.Timeout:
            problem, remedy = f"another process computes the sweep in {self.path}", "wait for it, or stop it"
            raise InputError(problem, argument="out", value=str(self.path), remedy=remedy) from None
        try:
            self.manifest = self._manifest(file, identity, axes, block)
            self.store = Hypercube(self.path / STORE, self.axes, self.manifest["chunk"], described="study" in identity)
            self._journal = Journal(self.path / _JOURNAL)
            self.compact()
        except BaseException:
            self._lock.release()
            raise

    def _manifest(
        self, file: Path, identity: Mapping[str, Any], axes: Mapping[str, Sequence[Any]], block: int
    ) -> dict[str, Any]:
        shape = [len(values) for values in axes.values()]
        if not file.exists():
            found = {"format": _FORMAT, "run": dict(identity), "axes": dict(axes), "shapes": [shape]}
            found |= {"chunk": list(chunk_shape(shape)), "block": block, "machine": _machine(), "created": _now()}
            _write(file, found)
            return found
        found = read_manifest(self.path)
        _require_same_run(self.path, found["run"], identity)
        _require_extension(found["axes"], axes)
        if found["axes"] != dict(axes):
            found["axes"], found["shapes"] = dict(axes), [*found["shapes"], shape]
            _write(file, found)
        return found

    @property
    def axes(self) -> dict[str, list[Any]]:
        """The values of each axis."""
        return self.manifest["axes"]

    def cells(self) -> list[Cell]:
        """All cells, in the order in which they were planned."""
        return list(new_cells([tuple(shape) for shape in self.manifest["shapes"]]))

    def plan(self, batched: Sequence[str], *, retry_failed: bool) -> list[list[Cell]]:
        """The blocks that are left to compute: those with a cell that is not done, or that failed if it is retried."""
        finished = {"done"} if retry_failed else {"done", "failed"}
        left = ~np.isin(self.store.statuses(), list(finished))
        planned, shapes = [], self.manifest["shapes"]
        for count in range(1, len(shapes) + 1):
            before = set(new_cells([tuple(shape) for shape in shapes[: count - 1]]))
            added = [cell for cell in new_cells([tuple(shape) for shape in shapes[:count]]) if cell not in before]
            planned += blocks(added, list(self.axes), batched, self.manifest["block"])
        return [block for block in planned if any(left[cell] for cell in block)]

    def record(self, entries: Sequence[dict[str, Any]]) -> None:
        """Append finished cells to the journal."""
        for entry in entries:
            self._journal.append(entry)

    def compact(self, running: Sequence[Cell] = ()) -> None:
        """Write the cells of the journal to the store, and which cells are being computed."""
        newest = {tuple(entry["cell"]): entry for entry in self._journal.entries()}
        inside = [entry for cell, entry in newest.items() if all(map(int.__lt__, cell, self.store.shape))]
        self.store.write(inside)
        statuses = self.store.statuses()
        stopped = {tuple(map(int, cell)): "waiting" for cell in np.argwhere(statuses == "running")}
        started = {cell: "running" for cell in running if statuses[cell] != "done"}
        self.store.set_status(stopped | started)
        self._journal.clear()

    def close(self) -> None:
        """Write what is left in the journal, and release the lock."""
        with contextlib.suppress(OSError):  # a full disk: the journal keeps the cells
            self.compact()
        self._journal.close()
        self._lock.release()


def read_manifest(path: Path) -> dict[str, Any]:
    """Read the manifest of a sweep.

    Raises:
        InputError: The folder has none, or it is damaged or of another format.
    """
    problem, remedy = f"{path} is not the folder of a sweep", "give the folder that was passed as `out`"
    try:
        found = json.loads((path / MANIFEST).read_text("utf-8"))
        version = found["format"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(problem, argument="path", value=str(path), remedy=remedy) from None
    problem = f"the sweep in {path} has format {version}, but this version reads format {_FORMAT}"
    remedy = "use the version of dynascope that wrote it"
    require(version == _FORMAT, problem, argument="path", value=str(path), remedy=remedy)
    return found


def _write(file: Path, manifest: Mapping[str, Any]) -> None:
    with written_beside(file) as partial:
        partial.write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _require_same_run(path: Path, stored: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    words = {"source": "the source code", "version": "the version of dynascope", "fields": "the fixed values"}
    for name in (*stored, *given):
        if stored.get(name) != given.get(name):
            before, now = stored.get(name, "none"), given.get(name, "none")
            detail = "" if name == "source" else f" ({before} before, {now} now)"
            problem = f"{words.get(name, f'the {name}')} of the sweep in {path} changed{detail}"
            raise InputError(problem, argument="out", value=str(path), remedy=_CHANGED)


def _require_extension(stored: Mapping[str, Sequence[Any]], given: Mapping[str, Sequence[Any]]) -> None:
    problem = f"the axes of the stored sweep are {', '.join(stored)}, but over has {', '.join(given)}"
    require(list(stored) == list(given), problem, argument="over", value=list(given), remedy=_CHANGED)
    for name, values in stored.items():
        kept = list(given[name][: len(values)]) == list(values)
        problem = f"the values of {name} do not start with those of the stored sweep"
        remedy = f"append new values to {', '.join(map(str, values))}, or choose another folder"
        require(kept, problem, argument="over", value=name, remedy=remedy)


def _machine() -> dict[str, Any]:
    return {"system": platform.platform(), "python": platform.python_version(), "cores": os.cpu_count()}


def _now() -> str:
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC"
