"""Conversion of user inputs and targets to numbers and names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from dynascope.tasks.data.column_names import counted
from dynascope.tasks.data.columns import Column, columns_of, not_numbers, to_numbers
from dynascope.tasks.data.plain_arrays import array_or_frame
from dynascope.tasks.data.targets import encode_targets
from dynascope.validation import require, require_array

__all__ = ["given_inputs", "given_targets", "require_same_rows"]

_ENCODE = "encode it as numbers, or use read_table(frame, target=…)"


def given_inputs(value: Any) -> tuple[Float[np.ndarray, "n d"], tuple[str, ...], tuple[int, int] | None]:
    """Return inputs as numbers, with their names (if any) and, for images, the image shape (height, width).

    Raises:
        InputError: If the inputs are not finite real numbers of shape (n, d) or (n, height, width).

    Example:
        >>> given_inputs(pd.DataFrame({"age": [31, 35], "tall": [True, False]}))
        (array([[31.,  1.],
               [35.,  0.]]), ('age', 'tall'), None)
    """
    table = array_or_frame(value, "x")
    if isinstance(table, pd.DataFrame | pd.Series):
        columns = columns_of(table, "x", argument="x")
        other = {name: each for name, each in columns.items() if not each.numeric}
        if other:
            raise not_numbers(other, "input", "x", remedy=_ENCODE)
        _require_whole(columns, "x")
        return require_array("x", to_numbers(columns, "input", "x"), (None, None)), tuple(columns), None
    single = "; for a single column, pass x[:, None]" if table.ndim == 1 else ""
    _require_axes("x", table, (2, 3), f"pass an array of shape (samples, columns) or (samples, height, width){single}")
    _require_real(table)
    shape = (int(table.shape[1]), int(table.shape[2])) if table.ndim == 3 else None
    return require_array("x", table.reshape(len(table), int(np.prod(table.shape[1:]))), (None, None)), (), shape


def given_targets(
    value: Any, classification: bool | None
) -> tuple[Float[np.ndarray, "n c"], tuple[str, ...], tuple[str, ...]]:
    """Return targets as numbers, with their names (if any) and a sentence if their kind is ambiguous.

    Several columns are quantities. A single column can be class labels (see `encode_targets`).

    Args:
        value: The targets, (n,) or (n, c).
        classification: Whether the targets are class labels; None applies the rule of `encode_targets`.

    Raises:
        InputError: If the targets are neither finite real numbers nor labels.

    Example:
        >>> given_targets(["oak", "elm", "oak"], None)[1:]
        (('elm', 'oak'), ("The class label 'y' is one-hot encoded: elm (1 sample), oak (2 samples).",))
    """
    table = array_or_frame(value, "y")
    if isinstance(table, np.ndarray):
        _require_axes("y", table, (1, 2), "pass an array of shape (samples, targets), or one value per sample")
        if table.ndim == 2 and not classification and table.dtype.kind not in "USO":
            return require_array("y", table, (None, None)), (), ()
    columns = columns_of(table, "y", argument="y")
    _require_whole(columns, "y")
    values, names, sentence, _ = encode_targets(columns, classification, source="y")
    decided = len(columns) == 1 and next(iter(columns.values())).kind != "number"
    return require_array("y", values, (None, None)), names, (sentence,) if decided else ()


def require_same_rows(inputs: Any, targets: Any) -> None:
    """Raise `InputError` if two pandas objects have the same rows in different orders."""
    if not all(isinstance(each, pd.DataFrame | pd.Series) for each in (inputs, targets)):
        return
    first, second = inputs.index, targets.index
    mixed = len(first) == len(second) and not first.equals(second) and set(first) == set(second)
    require(
        not mixed,
        "x and y have the same rows in different orders",
        argument="y",
        remedy="pass y.loc[x.index], or apply reset_index(drop=True) to both if the current orders match",
    )


def _require_real(array: np.ndarray) -> None:
    problems = {"U": ("text", f"{_ENCODE}; convert numbers stored as text with x.astype(float)")}
    problems |= {"S": problems["U"], "c": ("complex numbers", "give their real and imaginary parts as columns")}
    problems |= dict.fromkeys("Mm", ("dates or times", _ENCODE))
    content, remedy = problems.get(array.dtype.kind, ("", ""))
    require(not content, f"x contains {content}", argument="x", value=str(array.dtype), remedy=remedy)


def _require_axes(name: str, array: np.ndarray, axes: tuple[int, int], remedy: str) -> None:
    require(array.ndim in axes, f"{name} has shape {array.shape}", argument=name, value=array.shape, remedy=remedy)


def _require_whole(columns: dict[str, Column], name: str) -> None:
    gaps = {each: int(column.gaps.sum()) for each, column in columns.items() if column.gaps.any()}
    require(
        not gaps,
        f"{name} has missing or infinite values in {counted(gaps)}",
        argument=name,
        value=gaps,
        remedy="drop or replace these values first",
    )
