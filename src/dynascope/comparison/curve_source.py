"""Where a loss curve comes from: arrays of any library, lists, pandas and CSV files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from dynascope.arguments import require, require_memory, require_unpacked, shown_error
from dynascope.errors import InputError

__all__ = ["numbers", "plain", "read_curve", "read_rates"]

_CLOCKS = ("step", "time")
_RATES = ("learning_rate", "lr")
_LISTED = 8
_NUMBER = 4  # bytes that a byte of text takes as numbers, since two make one


def read_curve(source: Any) -> tuple[Any, str, Any]:
    """The losses of a curve, the name of their clock ("step" or "time"), and their places on it, None if it has none.

    Example:
        >>> read_curve(pd.DataFrame({"Step": [0, 10], "train_loss": [1.0, 0.5]}))
        (array([1. , 0.5]), 'step', array([ 0., 10.]))
    """
    if isinstance(source, str | os.PathLike):
        return _read_table(_read_csv(Path(source)), Path(source).name)
    if isinstance(source, pd.DataFrame):
        return _read_table(source, "the table")
    if isinstance(source, pd.Series):
        clock = "time" if str(source.index.name).strip().lower() == "time" else "step"
        return source.to_numpy(), clock, numbers("steps", source.index.to_numpy())
    return source, "step", None


def read_rates(source: Any, steps: Float[np.ndarray, " n"]) -> float | Float[np.ndarray, " step"] | None:
    """The learning rate of each step, from a column of a table or a file: each holds until the next is logged.

    Args:
        source: Of the curve.
        steps: At which it was logged.

    Returns:
        One number if it is constant, None if there is no such column.

    Example:
        >>> curve = pd.DataFrame({"step": [0, 2, 3], "loss": [1.0, 0.5, 0.4], "lr": [0.1, 0.2, 0.2]})
        >>> read_rates(curve, np.array([0.0, 2.0, 3.0]))
        array([0.1, 0.1, 0.2, 0.2])
    """
    if isinstance(source, str | os.PathLike):
        source = _read_csv(Path(source))
    if not isinstance(source, pd.DataFrame):
        return None
    names = {str(name).strip().lower(): name for name in source.columns}
    found = [names[name] for name in _RATES if name in names]
    if not found:
        return None
    logged = np.asarray(source[found[0]])
    rates = numbers("learning_rate", logged)
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


def _read_csv(path: Path) -> pd.DataFrame:
    problem = "is a directory" if path.is_dir() else "" if path.is_file() else "does not exist"
    require(not problem, f"{path} {problem}", argument="losses", value=str(path), remedy="name a CSV file")
    require_unpacked(_NUMBER * path.stat().st_size, path.name, argument="losses", value=str(path))
    try:
        table = pd.read_csv(path, skipinitialspace=True)
        if all(_is_number(name) for name in table.columns):
            table = pd.read_csv(path, skipinitialspace=True, header=None)
    except Exception as error:  # damaged files raise a dozen types, most of them undocumented
        reason = shown_error(error)
        raise InputError(
            f"{path.name} cannot be read as a table ({reason})",
            argument="losses",
            value=str(path),
            remedy="write it in UTF-8 with commas between the columns step and loss",
        ) from None
    return table


def _read_table(table: pd.DataFrame, source: str) -> tuple[Any, str, Any]:
    names = {str(name).strip().lower(): name for name in table.columns}
    if len(table.columns) == 1 and not set(names) & set(_CLOCKS):
        return table.iloc[:, 0].to_numpy(), "step", None
    clocks = [name for name in _CLOCKS if name in names]
    others = [str(name) for low, name in names.items() if low not in _CLOCKS]
    column = "loss" if "loss" in names else others[0].strip().lower() if clocks and len(others) == 1 else ""
    listed = ", ".join(map(repr, map(str, list(table.columns)[:_LISTED])))
    require(
        column and len(clocks) == 1,
        f"{source} has the columns {listed}, which do not say which is the loss and which counts the steps",
        argument="losses",
        value=list(map(str, table.columns)),
        remedy="name one of them 'loss' and one 'step' (or 'time', the sum of learning rates)",
    )
    return table[names[column]].to_numpy(), clocks[0], numbers("steps", table[names[clocks[0]]].to_numpy())


def numbers(name: str, values: Any) -> Float[np.ndarray, " n"]:
    """A row of real numbers, which need not be finite."""
    try:
        row = np.asarray(plain(values), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        row = None
    require(
        row is not None and np.asarray(plain(values)).dtype.kind in "biuf",
        f"{name} are not numbers",
        argument=name,
        value=type(values).__name__,
        remedy="give a row of real numbers",
    )
    assert row is not None
    require(
        row.ndim == 1,
        f"{name} have shape {row.shape}",
        argument=name,
        value=row.shape,
        remedy="give one curve, of shape (n,); a table with columns step and loss as a pandas DataFrame",
    )
    return row


def plain(values: Any) -> Any:
    """Values of PyTorch, which NumPy refuses while they require gradients, as plain numbers; others as they are."""
    if hasattr(values, "detach"):
        return values.detach().cpu().tolist()
    if isinstance(values, Sequence) and not isinstance(values, str):
        return [plain(each) if hasattr(each, "detach") else each for each in values]
    return values


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
