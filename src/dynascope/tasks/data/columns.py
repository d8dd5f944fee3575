"""Columns of a table and the kinds of their values."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from dynascope.errors import InputError
from dynascope.tasks.data.column_names import listed, require_different
from dynascope.tasks.data.plain_arrays import array_or_frame
from dynascope.validation import shown

__all__ = ["Column", "Kind", "columns_of", "not_numbers", "to_numbers"]

Kind = Literal["number", "integer", "truth", "text", "written number", "category", "date", "other"]

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("floating", "mixed-integer-float", "decimal", "empty"), "number"),
    "integer": "integer",
    "boolean": "truth",
    "categorical": "category",
    **dict.fromkeys(("datetime64", "datetime", "date", "time", "timedelta64", "timedelta", "period"), "date"),
}
_WORDS: dict[Kind, str] = {
    **dict.fromkeys(("text", "written number"), "text"),
    "category": "categories",
    "date": "dates or times",
}
_EXAMINED = 1000  # distinct values of a text column
_DATE = re.compile(
    r"(\d{4}([-/.])\d{1,2}\2\d{1,2}|\d{1,2}([-/.])\d{1,2}\3(\d{4}|\d{2}))(\D.*)?"
    r"|\d{1,2}:\d{2}(:\d{2}.*)?"
    r"|(\w{3,9},? )?\d{1,2}[. -]+[A-Za-z]{3,9}[., -]+\d{2,4}.*"
    r"|[A-Za-z]{3,9}\.? \d{1,2},? \d{4}.*"
)
_NUMBER = re.compile(r"[-+\u2212]?[$€£]? ?\d[\d.,' ]*([ed][-+]?\d+)? ?[%$€£]?", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, eq=False)
class Column:
    """A column and the kind of its values.

    Attributes:
        values: The values, indexed by row from 0.
        kind: Kind of the values that are not missing: "number", "integer", "truth" (booleans), "text", "written number"
            (text that mostly looks like numbers, for example 12 %), "category" (of pandas), "date" (or time) or
            "other".
    """

    values: pd.Series
    kind: Kind

    @classmethod
    def of(cls, values: Any) -> Column:
        """Make a column from a series and determine its kind.

        Example:
            >>> [Column.of(each).kind for each in ([1, 2], [1.5, None], ["oak", "elm"], ["1.2.2020", "3.2.2020"])]
            ['integer', 'number', 'text', 'date']
            >>> [Column.of(each).kind for each in (["12 %", "7 %"], ["3", "?", "4"], ["A1", "B2"])]
            ['written number', 'written number', 'text']
        """
        series = pd.Series(values).reset_index(drop=True)
        inferred = pd.api.types.infer_dtype(series, skipna=True)
        if inferred != "string":
            return cls(series, _KINDS.get(inferred, "other"))
        return cls(
            series, "date" if _mostly(_is_date, series) else "written number" if _mostly(_is_number, series) else "text"
        )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def numeric(self) -> bool:
        """Whether the values can be used as numbers."""
        return self.kind in ("number", "integer", "truth")

    @property
    def label(self) -> bool:
        """Whether the values are text or categories that can be encoded."""
        return self.kind in ("text", "written number", "category")

    @cached_property
    def gaps(self) -> Bool[np.ndarray, " n"]:
        """Mask of missing values and infinite numbers.

        Example:
            >>> Column.of([1.0, None, float("inf")]).gaps.tolist()
            [False, True, True]
        """
        missing = self.values.isna().to_numpy(dtype=bool)
        return missing if self.kind != "number" else missing | ~np.isfinite(self.numbers)

    @property
    def numbers(self) -> Float[np.ndarray, " n"]:
        """The values as numbers, with NaN for missing values."""
        return self.values.to_numpy(dtype=np.float64, na_value=np.nan)

    @property
    def names_rows(self) -> bool:
        """Whether all rows have different values that are integers, text, categories or dates."""
        return self.kind in ("integer", "text", "category", "date") and not self.gaps.any() and self.values.is_unique

    def rows(self, kept: np.ndarray) -> Column:
        """Select rows and keep the kind of the column."""
        return Column(self.values.iloc[kept].reset_index(drop=True), self.kind)


def columns_of(value: Any, letter: str, *, argument: str, names: Sequence[str] = ()) -> dict[str, Column]:
    """Split a frame or an array into columns by name.

    Args:
        value: A frame, series or array.
        letter: Default name of the column of an array, numbered if there are several: "x1", "x2", ….
        argument: Name of the argument, for messages.
        names: Names for the columns of an array.

    Raises:
        InputError: If the value is not a table, or if two columns have the same name.

    Example:
        >>> list(columns_of([[1, 2], [3, 4]], "x", argument="x")), list(columns_of([1, 2], "x", argument="x"))
        (['x1', 'x2'], ['x'])
    """
    table = array_or_frame(value, argument)
    if isinstance(table, pd.Series):
        return {letter if table.name is None else str(table.name): Column.of(table)}
    if isinstance(table, pd.DataFrame):
        named = [str(name) for name in table.columns]
        require_different(named, argument, argument=argument)
        return {name: Column.of(table.iloc[:, i]) for i, name in enumerate(named)}
    # Column-major order, because each column is examined separately.
    columns = list(np.asfortranarray(table.reshape(len(table), int(np.prod(table.shape[1:])))).T)
    if len(names) != len(columns):
        names = [letter if len(columns) == 1 else f"{letter}{i + 1}" for i in range(len(columns))]
    return {name: Column.of(column) for name, column in zip(names, columns, strict=True)}


def to_numbers(columns: Mapping[str, Column], role: str, source: str) -> Float[np.ndarray, "n d"]:
    """Convert columns to a matrix of numbers, with NaN for missing values.

    Args:
        columns: The columns by name.
        role: "input" or "target", for messages.
        source: Name of the table in messages.

    Raises:
        InputError: If a column is not numeric.
    """
    other = {name: column for name, column in columns.items() if not column.numeric}
    if other:
        raise not_numbers(other, role, source)
    try:
        return np.column_stack([column.numbers for column in columns.values()])
    except OverflowError:
        raise InputError(
            f"{source} has an integer that is too large for a floating-point number in the {role} {listed(columns)}",
            argument="path",
            value=list(columns),
            remedy="use other units",
        ) from None


def not_numbers(columns: Mapping[str, Column], role: str, source: str, *, remedy: str = "") -> InputError:
    """Make the error for columns that are not numeric, with a value of the first column as an example.

    Args:
        columns: The columns by name.
        role: "input" or "target".
        source: Name of the table.
        remedy: Remedy to use instead of the default one.
    """
    first = next(iter(columns.values()))
    words = _WORDS.get(first.kind, "values that are not numbers,")
    if first.kind == "date" and pd.api.types.infer_dtype(first.values, skipna=True) == "string":
        words = "dates or times in text"
    encoded = "encode it as numbers" + (", blank where one is missing," if first.kind == "written number" else "")
    left_out = "leave it out with `drop`"
    usual = f"{encoded} or {left_out if role == 'input' else 'choose another target'}"
    present = first.values.dropna().astype(str)
    unread = np.isnan(np.asarray(pd.to_numeric(present, errors="coerce"), dtype=np.float64))
    value = present.iloc[int(np.argmax(unread))]
    return InputError(
        f"{source} has {words} such as {shown(value)!r} in the {role} {listed(columns)}",
        argument="path",
        value=list(columns),
        remedy=remedy or usual,
    )


def _mostly(holds: Callable[[str], bool], values: pd.Series) -> bool:
    different = values.dropna().unique()[:_EXAMINED]
    return 2 * sum(holds(str(text).strip()) for text in different) >= len(different) > 0


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None


def _is_number(text: str) -> bool:
    with contextlib.suppress(ValueError):
        complex(text)
        return True
    return _NUMBER.fullmatch(text) is not None
