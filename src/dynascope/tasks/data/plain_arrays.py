"""Conversion of arrays, lists, frames and series of any library to NumPy or pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dynascope.errors import InputError
from dynascope.validation import is_traced, require

__all__ = ["array_or_frame"]

_FRAMES = ("DataFrame", "Series", "Table")  # of polars and other libraries that convert to pandas


def array_or_frame(value: Any, argument: str) -> np.ndarray | pd.DataFrame | pd.Series:
    """Convert a value to a NumPy array, or to a pandas frame or series.

    PyTorch tensors are detached and copied to the CPU.

    Args:
        value: An array, list, frame or series of numbers or labels.
        argument: Name of the argument, for messages.

    Raises:
        InputError: If the value cannot be converted, is sparse, is traced by JAX, or has masked values.

    Example:
        >>> array_or_frame([[1, 2], [3, 4]], "x").shape
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
        problem, remedy = "is traced by JAX", "create the task outside of compiled functions"
    elif hasattr(value, "toarray"):
        problem, remedy = "is a sparse matrix", f"pass {argument}.toarray()"
    elif value is None or isinstance(value, str | bytes | dict) or callable(value):
        problem, remedy = f"is {_type_of(value)}", "pass an array, a list of rows, a data frame or a series"
    elif isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        problem, remedy = "has masked values", "drop or replace these values first"
    require(not problem, f"{argument} {problem}", argument=argument, value=type(value).__name__, remedy=remedy)
    try:
        array = np.asarray(_numpy(value))
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise _no_array(argument, value) from None
    if array.ndim == 0:
        raise _no_array(argument, value)
    return array


def _numpy(value: Any) -> Any:
    """Convert PyTorch tensors, including those in lists, to NumPy arrays; floats become double precision."""
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


def _type_of(value: Any) -> str:
    return "None" if value is None else f"of the type {type(value).__name__}"
