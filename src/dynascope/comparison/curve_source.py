"""Loss curves from arrays of any library, lists, pandas and files, and from the exports of common loggers."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from dynascope.arguments import require, require_memory
from dynascope.tasks.data.names import is_unnamed, listed
from dynascope.tasks.data.plain_arrays import plain
from dynascope.tasks.data.table_files import read_frame

__all__ = ["CurveSource", "numbers", "rate_of_each_step", "read_curve"]

_STEPS = ("step", "_step", "global_step", "trainer/global_step", "train/global_step", "iteration")
_TIME = "time"
_RATES = ("learning_rate", "lr")
_RATE_OR_RANGE = re.compile(r"learning_rate|lr(-.*)?|.*__(min|max)")  # W&B writes the least and the largest value too
_OTHER_CLOCK = re.compile(r"epoch|wall.?time|relative time.*|_?timestamp|_?runtime|.* - _step(__min|__max)?")
_LOSS = re.compile(r"loss|mse")
_HELD_OUT = re.compile(r"(?<![a-z])(val|valid|validation|test|eval|dev|held.?out)(?![a-z])")


@dataclasses.dataclass(frozen=True)
class CurveSource:
    """What was logged, before it is checked.

    Attributes:
        losses: The losses, in any form.
        clock: "step" or "time", the sum of the learning rates so far.
        places: The steps or times, or None if every step was logged.
        rates: The learning rate at each of them, or None if it was not logged.
        notes: Sentences on what was read, where it had to be chosen.
    """

    losses: Any
    clock: str = "step"
    places: Any = None
    rates: Any = None
    notes: tuple[str, ...] = ()


def read_curve(source: Any) -> CurveSource:
    """The losses, their clock and their learning rates.

    Example:
        >>> curve = read_curve(pd.DataFrame({"Wall time": [1.7e9, 1.8e9], "Step": [0, 10], "Value": [1.0, 0.5]}))
        >>> curve.losses, curve.places, curve.notes
        (array([1. , 0.5]), array([ 0., 10.]), ("The loss of your curve is the column 'Value' of the table.",))
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        problem = "is a directory" if path.is_dir() else "" if path.is_file() else "does not exist"
        require(not problem, f"{path} {problem}", argument="losses", value=str(path), remedy="name a file of columns")
        table, notes, empty = read_frame(path, argument="losses", header=False)
        return _from_table(table, empty, path.name, notes)
    if isinstance(source, pd.DataFrame):
        source = source.reset_index() if any(source.index.names) else source  # it may hold the steps
        return _from_table(source, source.isna().to_numpy(), "the table", [])
    if isinstance(source, pd.Series):
        clock = _TIME if str(source.index.name).strip().lower() == _TIME else "step"
        return CurveSource(source.to_numpy(), clock, numbers("steps", source.index.to_numpy()))
    return CurveSource(source)


def rate_of_each_step(
    rates: Float[np.ndarray, " n"], steps: Float[np.ndarray, " n"]
) -> float | Float[np.ndarray, " step"]:
    """The learning rate of each step, where each holds until the next is logged; one number if it is constant.

    Args:
        rates: The rates that were logged.
        steps: The steps at which they were logged.

    Example:
        >>> rate_of_each_step(np.array([0.1, 0.2, 0.2]), np.array([0.0, 2.0, 3.0]))
        array([0.1, 0.1, 0.2, 0.2])
    """
    if np.ptp(rates) == 0:
        return float(rates[0])
    lasts = np.diff(np.append(steps, steps[-1] + 1))
    lasts[0] += steps[0]  # before which nothing was logged
    require_memory(
        lasts.sum() * rates.itemsize,
        "a learning rate for each step",
        argument="steps",
        value=float(steps[-1]),
        remedy="count steps, not samples, or give one rate by --learning-rate",
    )
    return np.repeat(rates, lasts.astype(int))


def _from_table(table: pd.DataFrame, empty: np.ndarray, source: str, notes: Sequence[str]) -> CurveSource:
    """Return the curve in a table; `empty` marks the cells that hold nothing."""
    called = [re.sub(r"^[#\s]+", "", str(name)).strip().lower() for name in table.columns]
    rows = [i for i, name in enumerate(table.columns) if is_unnamed(str(name))]
    steps = sorted((i for i, name in enumerate(called) if name in _STEPS), key=lambda i: _STEPS.index(called[i]))
    clocks = [*steps[:1], *(i for i, name in enumerate(called) if name == _TIME)]
    require(
        bool(clocks) or all(np.array_equal(table.iloc[:, i], np.arange(len(table))) for i in rows),
        f"column {rows[0] + 1 if rows else 0} of {source} has no name, and does not number the rows from 0",
        argument="losses",
        value=source,
        remedy="name it 'step' if it counts the steps, or remove it",
    )
    logged = [i for i in range(len(called)) if i not in (*rows, *steps, *clocks)]
    logged = [i for i in logged if not _OTHER_CLOCK.fullmatch(called[i])]
    values = [i for i in logged if not _RATE_OR_RANGE.fullmatch(called[i])]
    losses = _may_be_the_loss(called, values)
    alone = not clocks and len(table.columns) - len(rows) == 1
    names = [str(name) for i, name in enumerate(table.columns) if i not in rows]
    problem = "which do not say which is the loss and which counts the steps"
    remedy = "name one of them 'loss' and one 'step' (or 'time', the sum of learning rates)"
    if len(losses) > 1 and len(clocks) == 1:
        problem = f"of which {listed(str(table.columns[i]) for i in losses)} may be the loss"
        remedy = "name the one that was minimised 'loss', or leave the others out"
    require(
        len(losses) == 1 and (alone or len(clocks) == 1),
        f"{source} has the columns {listed(names)}, {problem}",
        argument="losses",
        value=names,
        remedy=remedy,
    )
    loss = losses[0]
    # Loggers write training, validation and rates into different rows, and leave the other cells empty.
    partly = [i for i in logged if i != loss and empty[:, i].any()]
    kept = ~(empty[:, loss] & (~empty[:, partly]).any(axis=1))
    notes = list(notes)
    if len(values) > 1 or (not alone and len(called) > 2 and called[loss] != "loss"):
        notes.append(f"The loss of your curve is the column {str(table.columns[loss])!r} of {source}.")
    if not kept.all():
        notes.append(f"Rows without a loss were skipped: {np.sum(~kept)} of {len(kept)}.")
    found = [called.index(name) for name in _RATES if name in called]
    return CurveSource(
        table.iloc[:, loss].to_numpy()[kept],
        "step" if steps or not clocks else _TIME,
        None if alone else numbers("steps", table.iloc[:, clocks[0]].to_numpy()[kept]),
        None if not found else table.iloc[:, found[0]].ffill().bfill().to_numpy()[kept],
        tuple(notes),
    )


def _may_be_the_loss(names: Sequence[str], values: Sequence[int]) -> list[int]:
    """The column of that name or the only one; otherwise those of a training loss, or all if there are none."""
    named = [i for i in values if names[i] == "loss"]
    if named or len(values) < 2:
        return named or list(values)
    metrics = {i: names[i].rpartition(" - ")[2] for i in values}  # W&B puts the name of the run before
    losses = [i for i in values if _LOSS.search(metrics[i])]
    return [i for i in losses if not _HELD_OUT.search(metrics[i])] or list(values)


def numbers(name: str, values: Any) -> Float[np.ndarray, " n"]:
    """Return a row of real numbers, which need not be finite, as an array of shape (n,)."""
    row = np.asarray(plain(values, name))
    require(
        row.dtype.kind in "biuf",
        f"{name} are not numbers",
        argument=name,
        value=type(values).__name__,
        remedy="give a row of real numbers",
    )
    require(
        row.ndim == 1,
        f"{name} have shape {row.shape}",
        argument=name,
        value=row.shape,
        remedy="give a row of shape (n,); a table with columns step and loss as a pandas DataFrame",
    )
    return row.astype(np.float64)
