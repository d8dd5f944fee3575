"""Evaluate a study or a function on a grid of values, and continue after a crash."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from os import PathLike
from pathlib import Path
from typing import Any

from dynascope.errors import InputError
from dynascope.flows.progress import report_progress
from dynascope.sweeps.axes import checked_axes
from dynascope.sweeps.cells import Cell, settings_of
from dynascope.sweeps.entries import run_block
from dynascope.sweeps.folder import Folder
from dynascope.sweeps.runs import Run, run_of
from dynascope.sweeps.swept import Sweep, load_sweep
from dynascope.sweeps.workers import (
    finished_in_executor,
    finished_in_processes,
    require_main_guard,
    require_portable,
)
from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import NonNegativeInt, PositiveInt

__all__ = ["MOST_CELLS", "checked_sweep", "cores", "sweep"]

MOST_CELLS = 10_000
_BLOCK = 32  # largest number of cells that are computed together
_BLOCKS = 4  # smallest number of blocks for each worker
_FIRST, _SECONDS = 1.0, 5.0  # until the first time, and two times at which finished cells are written to the store
_SHARE = 20  # writing takes at most 1/_SHARE of the time
_SUBMITTED = 32  # blocks in an executor of unknown size


@checked
def sweep(
    run: Any,
    *,
    over: Mapping[str, Any],
    out: str | PathLike[str],
    workers: NonNegativeInt | None = None,
    executor: Any = None,
    retry_failed: bool = False,
    most_cells: PositiveInt | None = MOST_CELLS,
    **fixed: Any,
) -> Sweep:
    """Run a study or a function for every combination of values, and store what each run returned.

    Each combination is a cell. The same call continues a sweep that was interrupted or killed: cells that were done
    are not computed again, and the final store is the same, bit for bit, except for the durations. Values that are
    appended to an axis extend the sweep, and only the new cells are computed.

    A cell that raises an exception, or returns a number that is not finite, has failed, and its `reason` is stored.
    The other cells are computed all the same.

    Args:
        run: A study, its name, or a function of keyword arguments. The function returns a number, a dictionary of
            numbers, an xarray dataset, or a result of dynascope. See `Sweep.record` for what is stored.
        over: The values of each varied argument: a list, an array, or text such as "0.1:2:17log". For a field of a
            study that is a list, each value is a list with one entry.
        out: The folder of the sweep. It is created, or continued if it contains the same sweep.
        workers: Number of worker processes, each with one thread; by default one for each core. With 0, cells are
            computed in this process, which also accepts functions that cannot be sent to another process.
        executor: A `concurrent.futures.Executor` that computes the cells instead, for example that of a cluster. Its
            processes must be able to import dynascope and the function.
        retry_failed: Whether to compute failed cells again.
        most_cells: Largest number of cells; None for any number.
        **fixed: Arguments that are equal in all cells.

    Returns:
        The sweep, as `load_sweep` returns it.

    Raises:
        InputError: An argument does not exist, is given twice or has no valid value; there are too many cells; the
            folder contains another sweep, another process computes it, or it cannot be written; or the run cannot be
            sent to other processes.

    Example:
        >>> import tempfile
        >>> def final_loss(rate, seed):
        ...     return {"loss": (1 - rate) ** 10 * (1 + seed)}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = sweep(final_loss, over={"rate": [0.1, 0.5], "seed": range(2)}, out=f"{folder}/s", workers=0)
        >>> found
        <Sweep of final_loss over rate (2) × seed (2): 4 done>
        >>> found.record["loss"].sel(rate=0.5, seed=1).round(6).item()
        0.001953
    """
    if executor is None and workers != 0:
        require_main_guard(run)
    what, axes = checked_sweep(run, over, fixed, most_cells=most_cells)
    right = executor is None or isinstance(executor, Executor)
    remedy = "pass a concurrent.futures.Executor"
    require(
        right, f"executor has type {type(executor).__name__}", argument="executor", value=str(executor), remedy=remedy
    )
    if executor is None and workers != 0:
        require_portable(what)
    size = math.prod(map(len, axes.values())) // (_BLOCKS * max(workers or cores(), 1))
    folder = Folder(Path(out), what.identity(), axes, min(max(size, 1), _BLOCK))
    try:
        plan = folder.plan(what.batched, retry_failed=retry_failed)
        finished = _finished(what, folder.axes, plan, workers, executor)
        for entries in _batches(finished, folder, plan, workers or cores()):
            folder.record(entries)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(
            f"the sweep cannot be stored in {out} ({reason})",
            argument="out",
            value=str(out),
            remedy="free some space, and run the same command again; the finished cells are kept",
        ) from error
    finally:
        folder.close()
    return load_sweep(out)


def checked_sweep(
    run: Any, over: Mapping[str, Any], fixed: Mapping[str, Any], *, most_cells: int | None = MOST_CELLS
) -> tuple[Run, dict[str, list[Any]]]:
    """Check the arguments of a sweep and return its run and its axes.

    Raises:
        InputError: As for `sweep`.
    """
    what, axes = run_of(run, fixed), checked_axes(over)
    what.check_names(axes)
    count = math.prod(map(len, axes.values()))
    few = most_cells is None or count <= most_cells
    remedy = f"give fewer values, or allow more than {most_cells} cells with `most_cells`"
    require(few, f"over has {count} cells", argument="over", value=count, remedy=remedy)
    _require_valid_values(what, axes)
    return what, axes


def _require_valid_values(run: Run, axes: Mapping[str, Sequence[Any]]) -> None:
    """Require that every value is valid in some cell; single cells may be invalid, and then fail with this reason."""
    first: Cell = (0,) * len(axes)
    for axis, (name, values) in enumerate(axes.items()):
        for place in range(len(values)):
            cell = (*first[:axis], place, *first[axis + 1 :])
            try:
                run.check(settings_of(cell, axes))
            except InputError as error:
                if error.argument == name and not _valid_elsewhere(run, axes, axis, place):
                    raise


def _valid_elsewhere(run: Run, axes: Mapping[str, Sequence[Any]], axis: int, place: int) -> bool:
    """Whether a value is valid together with some value of one other argument."""
    for other, values in enumerate(axes.values()):
        for another in range(len(values) if other != axis else 0):
            cell = tuple(place if k == axis else another if k == other else 0 for k in range(len(axes)))
            try:
                run.check(settings_of(cell, axes))
            except InputError:
                continue
            return True
    return False


def _finished(
    run: Run, axes: Mapping[str, Sequence[Any]], plan: list[list[Cell]], workers: int | None, executor: Executor | None
) -> Iterator[tuple[list[Cell], list[dict[str, Any]]]]:
    """The blocks with their entries, in the order in which they finish."""
    if executor is not None:
        return finished_in_executor(executor, run, axes, plan, workers or _SUBMITTED)
    if workers == 0:
        return ((block, run_block(run, axes, block)) for block in plan)
    return finished_in_processes(run, axes, plan, min(workers or cores(), max(len(plan), 1)))


def _batches(
    finished: Iterator[tuple[list[Cell], list[dict[str, Any]]]], folder: Folder, plan: list[list[Cell]], workers: int
) -> Iterator[list[dict[str, Any]]]:
    """Report progress and write finished cells to the store from time to time."""
    cells, done = sum(map(len, plan)), 0
    left = {tuple(block): None for block in plan}  # blocks start in the order of the plan
    report_progress(0, cells, "cells")
    due = time.monotonic() + _FIRST
    for block, entries in finished:
        yield entries
        del left[tuple(block)]
        done += len(entries)
        report_progress(done, cells, "cells")
        if time.monotonic() > due:
            start = time.monotonic()
            folder.compact(running=[cell for block in itertools.islice(left, workers) for cell in block])
            due = time.monotonic() + max(_SECONDS, _SHARE * (time.monotonic() - start))


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
