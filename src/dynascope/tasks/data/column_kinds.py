"""What a column holds: numbers, labels, dates, or what is none of these."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Float

from dynascope.arguments import shown
from dynascope.errors import InputError
from dynascope.tasks.data.columns import listed

__all__ = ["Kind", "is_written_number", "kind_of", "refused", "to_numbers"]

Kind = Literal["number", "integer", "truth", "text", "category", "date", "other"]

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("floating", "mixed-integer-float", "decimal", "empty"), "number"),
    "integer": "integer",
    "boolean": "truth",
    "categorical": "category",
    **dict.fromkeys(("datetime64", "datetime", "date", "time", "timedelta64", "timedelta", "period"), "date"),
}
_WORDS: dict[Kind, str] = {"text": "text", "category": "categories", "date": "dates or times"}
_LOOKED_AT = 1000  # values of a column of text
_DATE = re.compile(
    r"(\d{4}([-/.])\d{1,2}\2\d{1,2}|\d{1,2}([-/.])\d{1,2}\3(\d{4}|\d{2}))(\D.*)?"
    r"|\d{1,2}:\d{2}(:\d{2}.*)?"
    r"|(\w{3,9},? )?\d{1,2}[. -]+[A-Za-z]{3,9}[., -]+\d{2,4}.*"
    r"|[A-Za-z]{3,9}\.? \d{1,2},? \d{4}.*"
)
_NUMBER = re.compile(r"[-+]?[$€£]? ?\d[\d.,' ]*(e[-+]?\d+)? ?[%$€£]?", re.IGNORECASE)


def kind_of(column: pd.Series) -> Kind:
    """The kind of what is in a column, gaps apart.

    Example:
        >>> [kind_of(pd.Series(column)) for column in ([1, 2], [1.5, None], ["oak", "elm"], ["1.2.2020", "3.2.2020"])]
        ['integer', 'number', 'text', 'date']
    """
    if _is_text(column):
        return "date" if _mostly(_is_date, column) else "text"
    return _KINDS.get(pd.api.types.infer_dtype(column, skipna=True), "other")


def to_numbers(columns: Mapping[str, pd.Series], role: str, source: str) -> Float[np.ndarray, "n d"]:
    """The columns as numbers, gaps as NaN.

    Args:
        columns: The columns by name.
        role: What they are, "input" or "target", for messages.
        source: What the table is called in messages.

    Raises:
        InputError: A column holds something else.
    """
    other = {name: column for name, column in columns.items() if kind_of(column) not in ("number", "integer", "truth")}
    if other:
        raise refused(other, role, source)
    try:
        return np.column_stack([column.to_numpy(dtype=np.float64, na_value=np.nan) for column in columns.values()])
    except OverflowError:
        raise InputError(
            f"{source} has an integer that is too large for any number in the {role} {listed(columns)}",
            argument="path",
            value=list(columns),
            remedy="give it in other units",
        ) from None


def refused(columns: Mapping[str, pd.Series], role: str, source: str, *, remedy: str = "") -> InputError:
    """The error of columns that are no numbers, the first of which is shown.

    Args:
        columns: The columns by name.
        role: What they are, "input" or "target".
        source: What the table is called.
        remedy: What to do, if it is not to leave out an input.
    """
    first = next(iter(columns.values()))
    words = _WORDS.get(kind_of(first), "values that are not numbers,")
    if kind_of(first) == "date" and _is_text(first):
        words = "dates or times in text"
    written = kind_of(first) == "text" and is_written_number(first)
    encoded = "encode it as numbers" + (", blank where one is missing," if written else "")
    left_out = "leave it out (drop=, on the command line --drop)"
    usual = f"{encoded} or {left_out if role == 'input' else 'choose another target'}"
    return InputError(
        f"{source} has {words} such as {shown(_not_number(first))!r} in the {role} {listed(columns)}",
        argument="path",
        value=list(columns),
        remedy=remedy or usual,
    )


def is_written_number(column: pd.Series) -> bool:
    """Whether at least half of a column of text are numbers that were written in some way that is not read here.

    Example:
        >>> [is_written_number(pd.Series(column)) for column in (["12 %", "7 %"], ["3", "?", "4"], ["A1", "B2"])]
        [True, True, False]
    """
    return _mostly(_is_number, column)


def _mostly(holds: Callable[[str], bool], column: pd.Series) -> bool:
    values = column.dropna().unique()[:_LOOKED_AT]
    return 2 * sum(holds(str(text).strip()) for text in values) >= len(values) > 0


def _is_text(column: pd.Series) -> bool:
    return pd.api.types.infer_dtype(column, skipna=True) == "string"


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None


def _is_number(text: str) -> bool:
    with contextlib.suppress(ValueError):
        complex(text)
        return True
    return _NUMBER.fullmatch(text) is not None


def _not_number(column: pd.Series) -> str:
    present = column.dropna().astype(str).to_list()
    for value in present:
        try:
            float(value)
        except ValueError:
            return value
    return present[0]
