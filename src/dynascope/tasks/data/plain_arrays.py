"""Arrays of any library, lists, frames and series as NumPy arrays or columns of pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dynascope.arguments import is_traced, require
from dynascope.errors import InputError
from dynascope.tasks.data.columns import listed

__all__ = ["columns_of", "frame_columns", "plain"]

_FRAMES = ("DataFrame", "Series", "Table")  # of polars and others, which know the way to pandas


def plain(value: Any, argument: str) -> np.ndarray | pd.DataFrame | pd.Series:
    """The value as an array of NumPy, or as a frame or series of pandas, whatever it was.

    Tensors of PyTorch are taken as they are now, detached from what they came from.

    Args:
        value: Numbers or labels in some form.
        argument: Its name, for messages.

    Raises:
        InputError: It is none of these, or an array with masked values.

    Example:
        >>> plain([[1, 2], [3, 4]], "x").shape
        (2, 2)
    """
    if isinstance(value, pd.DataFrame | pd.Series):
        return value
    if type(value).__name__ in _FRAMES and hasattr(value, "to_pandas"):
        return value.to_pandas()
    if isinstance(value, pd.Index | pd.api.extensions.ExtensionArray):
        return pd.Series(value)
    problem, remedy = "", ""
    if is_traced(value):
        problem, remedy = "is traced by JAX", "make the task outside of compiled functions"
    elif hasattr(value, "toarray"):
        problem, remedy = "is a sparse matrix", f"pass {argument}.toarray()"
    elif value is None or isinstance(value, str | bytes | dict) or callable(value):
        problem, remedy = f"is {_told(value)}", "pass an array, a list of rows, a data frame or a series"
    elif isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        problem, remedy = "has masked values", "drop or fill them first"
    require(not problem, f"{argument} {problem}", argument=argument, value=type(value).__name__, remedy=remedy)
    try:
        array = np.asarray(_numpy(value))
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise _no_array(argument, value) from None
    if array.ndim == 0:
        raise _no_array(argument, value)
    return array


def columns_of(value: Any, letter: str, *, argument: str, names: Sequence[str] = ()) -> dict[str, pd.Series]:
    """The columns of a frame by their names, or of an array by those given, or else "x1", "x2", …; "x" if single.

    Raises:
        InputError: It is no table of columns with names of their own.

    Example:
        >>> list(columns_of([[1, 2], [3, 4]], "x", argument="x")), list(columns_of([1, 2], "x", argument="x"))
        (['x1', 'x2'], ['x'])
    """
    table = plain(value, argument)
    if isinstance(table, pd.Series):
        return {letter if table.name is None else str(table.name): table.reset_index(drop=True)}
    if isinstance(table, pd.DataFrame):
        return frame_columns(table, argument)
    # Column after column in memory, as each is looked at by itself.
    columns = list(np.asfortranarray(table.reshape(len(table), int(np.prod(table.shape[1:])))).T)
    if len(names) != len(columns):
        names = [letter if len(columns) == 1 else f"{letter}{i + 1}" for i in range(len(columns))]
    return {name: pd.Series(column) for name, column in zip(names, columns, strict=True)}


def frame_columns(frame: pd.DataFrame, argument: str) -> dict[str, pd.Series]:
    """The columns of a data frame by name.

    Raises:
        InputError: Two of them have the same name.
    """
    names = [str(name) for name in frame.columns]
    repeated = sorted({name for name in names if names.count(name) > 1})
    require(
        not repeated,
        f"{argument} has several columns named {listed(repeated)}",
        argument=argument,
        value=repeated,
        remedy="give each its own name",
    )
    return {name: frame.iloc[:, i].reset_index(drop=True) for i, name in enumerate(names)}


def _numpy(value: Any) -> Any:
    """Tensors of PyTorch, also in lists, as arrays of NumPy, which has no numbers of half precision of its own kind."""
    if hasattr(value, "detach"):
        tensor = value.detach().cpu()
        return (tensor.double() if tensor.is_floating_point() else tensor).numpy()
    if isinstance(value, list | tuple) and any(hasattr(each, "detach") or isinstance(each, list) for each in value):
        return [_numpy(each) for each in value]
    return value


def _no_array(argument: str, value: Any) -> InputError:
    return InputError(
        f"{argument} is not an array of real numbers",
        argument=argument,
        value=type(value).__name__,
        remedy="pass real numbers in rows of equal length",
    )


def _told(value: Any) -> str:
    return "None" if value is None else f"of the type {type(value).__name__}"
