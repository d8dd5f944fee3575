"""Reads numbers with decimal commas or with marks between thousands, as the whole table shows which is which."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from dynascope.errors import InputError
from dynascope.tasks.data.names import listed

__all__ = ["with_numbers"]

_BLANK = r"'\u2019\u00a0\u202f "  # between thousands, beside points or commas
_EXPONENT = r"([eE][-+]?\d+)?"
_WHOLE = re.compile(r"[-+]?\d+")
_BELOW_THOUSAND = re.compile(r"[-+]?\d{1,3}")
_POINT = re.compile(rf"[-+]?(\d+\.?\d*|\.\d+){_EXPONENT}")
_WITH_COMMA = re.compile(rf"[-+]?(\d*|\d{{1,3}}([.{_BLANK}])\d{{3}}(\2\d{{3}})*),\d+{_EXPONENT}")  # 1,5 or 1.234,5
_GROUPED_BY_POINTS = re.compile(rf"[-+]?[1-9]\d{{0,2}}([.{_BLANK}])\d{{3}}(\1\d{{3}})*")  # 1.234
_GROUPED_BY_COMMAS = re.compile(rf"[-+]?[1-9]\d{{0,2}}([,{_BLANK}])\d{{3}}(\1\d{{3}})*(\.\d*)?{_EXPONENT}")  # 1,234.5


def with_numbers(
    frame: pd.DataFrame, original: Callable[[], pd.DataFrame], source: str, *, argument: str
) -> tuple[pd.DataFrame, list[str]]:
    """The table with numbers in place of text where all values of a column are numbers with commas or grouped digits.

    A value such as 1,234 can be read in two ways. A column of nothing else is read as the other columns are. So is a
    column of values such as 1.234 and whole numbers below a thousand; without whole numbers they are decimals.

    Args:
        frame: Columns as pandas reads them with decimal points.
        original: Returns the same columns as text; called only if marks may stand between thousands.
        source: Name of the table in errors.
        argument: Name of the argument that gave it, for errors.

    Returns:
        The table, and sentences that name the columns.

    Raises:
        InputError: A comma or a point may be a decimal mark or stand between thousands, and nothing shows which.

    Example:
        >>> frame = pd.DataFrame({"a": ["1,5", "2"], "b": ["1,234", "2,345"]})
        >>> numbers, notes = with_numbers(frame, lambda: frame, "trees.csv", argument="path")
        >>> numbers["b"].tolist(), notes
        ([1.234, 2.345], ["Decimal commas were read in 'a', 'b'."])
    """
    columns = _by_name(frame)
    text = [name for name, each in columns.items() if pd.api.types.infer_dtype(each, skipna=True) == "string"]
    decimal = [name for name in text if _all(columns[name], _WITH_COMMA, _WHOLE, _GROUPED_BY_POINTS)]
    decimal = [name for name in decimal if _any(columns[name], _WITH_COMMA)]
    grouped = [name for name in text if _all(columns[name], _GROUPED_BY_COMMAS, _POINT)]
    fractions = {name: each for name, each in columns.items() if each.dtype.kind == "f" and (each % 1 > 0).any()}
    pointed = list(fractions) if all(map(_may_be_thousands, fractions.values())) else []
    if not (decimal or grouped or pointed):
        return frame, []
    written = _by_name(original())
    doubtful = [name for name in decimal if name in grouped]
    decimal, grouped = ([name for name in names if name not in doubtful] for names in (decimal, grouped))
    # A point that cannot be between thousands is a decimal mark, and then commas are not.
    points = any("," in value for name in grouped for value in _values(written[name]))
    points = points or any(_is_decimal(value) for column in written.values() for value in _values(column))
    if not decimal and not points:
        pointed = [name for name in pointed if _all(written[name], _GROUPED_BY_POINTS, _BELOW_THOUSAND)]
        doubtful += [name for name in pointed if _any(written[name], _BELOW_THOUSAND)]
    if doubtful and points == bool(decimal):
        shown = next(value for value in _values(written[doubtful[0]]) if not _WHOLE.fullmatch(value))
        raise InputError(
            f"{source} has numbers such as {shown!r} in {listed(doubtful)}, whose "
            f"{'comma' if ',' in shown else 'point'} may be a decimal mark or stand between thousands",
            argument=argument,
            value=doubtful,
            remedy="write decimal points in all numbers of a column, and nothing between thousands",
        )
    decimal, grouped = (decimal, grouped + doubtful) if points else (decimal + doubtful, grouped)
    changed = {name: _numbers(written[name], rf"[,{_BLANK}]") for name in grouped}
    if decimal:
        # In such a table 1.500 is fifteen hundred, although pandas has read 1.5.
        others = [name for name in columns if name not in (*decimal, *grouped)]
        others = [name for name in others if _all(written[name], _GROUPED_BY_POINTS, _WHOLE)]
        others = [name for name in others if _any(written[name], _GROUPED_BY_POINTS)]
        changed |= {name: _numbers(written[name], rf"[.{_BLANK}]") for name in (*decimal, *others)}
        grouped += others
    marks = {"Decimal commas were read": decimal, "Marks between thousands were removed": grouped}
    places = {what: listed(each for each in columns if each in names) for what, names in marks.items() if names}
    return frame.assign(**changed), [f"{what} in {names}." for what, names in places.items()]


def _by_name(frame: pd.DataFrame) -> dict[str, pd.Series]:
    return {str(name): column for name, column in frame.items()}


def _may_be_thousands(column: pd.Series) -> bool:
    """Whether all numbers may be thousands that pandas has read as 1.234, beside whole numbers below a thousand."""
    size = np.abs(column.dropna().to_numpy(dtype=np.float64))
    thousandths = 1000 * size[np.isfinite(size)]
    return bool(np.allclose(thousandths, thousandths.round(), rtol=1e-12) and not (size[size % 1 > 0] < 1).any())


def _is_decimal(value: str) -> bool:
    return "." in value and bool(_POINT.fullmatch(value)) and not _GROUPED_BY_POINTS.fullmatch(value)


def _all(column: pd.Series, *patterns: re.Pattern[str]) -> bool:
    return all(any(pattern.fullmatch(value) for pattern in patterns) for value in _values(column))


def _any(column: pd.Series, pattern: re.Pattern[str]) -> bool:
    return any(pattern.fullmatch(value) for value in _values(column))


def _values(column: pd.Series) -> Iterable[str]:
    return (str(value).strip() for value in column.dropna().unique())


def _numbers(column: pd.Series, between: str) -> pd.Series:
    plain = column.str.strip().str.replace(between, "", regex=True).str.replace(",", ".", regex=False)
    return pd.Series(pd.to_numeric(plain))
