"""Interpretation of decimal commas and thousands separators, based on the whole table."""

from __future__ import annotations

import pandas as pd

from dynascope.errors import InputError
from dynascope.tasks.data.column_names import listed

__all__ = ["with_numbers"]

_BLANKS = r"'\u2019\u00a0\u202f "  # possible thousands separators with either decimal mark
_GROUPS = rf"[1-9]\d{{0,2}}(([%s]\d{{3}})+|([{_BLANKS}]\d{{3}})+)"
_NUMBERS = {
    mark: rf"[-+]?((\d+|{_GROUPS % other})([{mark}]\d*)?|[{mark}]\d+)([eE][-+]?\d+)?" for mark, other in (",.", ".,")
}
_BELOW_THOUSAND = r"[-+]?\d{1,3}"


def with_numbers(
    frame: pd.DataFrame, written: pd.DataFrame, source: str, *, decimal_points: bool, argument: str
) -> tuple[pd.DataFrame, list[str]]:
    """Read columns of numbers with decimal commas or thousands separators.

    A number such as 1,234 is ambiguous. A column of ambiguous numbers is read with the decimal mark of the other
    columns.

    Args:
        frame: The columns as pandas reads them with decimal points.
        written: The same columns as text.
        source: Name of the table in errors.
        decimal_points: Whether a number such as 1.234 has a decimal point unless another column has decimal commas.
        argument: Name of the argument that holds the path, for errors.

    Returns:
        The table, and sentences that list the converted columns.

    Raises:
        InputError: If a comma or point can be a decimal mark or a thousands separator, and no other column resolves the
            ambiguity.

    Example:
        >>> written = pd.DataFrame({"a": ["1,5", "2"], "b": ["1,234", "2,345"]})
        >>> numbers, notes = with_numbers(written, written, "a.csv", decimal_points=False, argument="path")
        >>> numbers["b"].tolist(), notes
        ([1.234, 2.345], ["Decimal commas were read in 'a', 'b'."])
    """
    values = {str(name): pd.Series(each[frame[name].notna()]).str.strip() for name, each in written.items()}
    values = {name: column for name, column in values.items() if column.str.contains(rf"[.,{_BLANKS}]").any()}
    readable = {mark: [name for name, column in values.items() if _all(column, _NUMBERS[mark])] for mark in ",."}
    commas, points = ([name for name in readable[a] if name not in readable[b]] for a, b in (",.", ".,"))
    either = [name for name in readable[","] if name in readable["."]]
    doubtful = [name for name in either if commas or points or _is_doubtful(values[name], decimal_points)]
    if doubtful and bool(commas) == bool(points):
        example = next(value for value in values[doubtful[0]] if not value.isdigit())
        raise InputError(
            f"{source} has numbers such as {example!r} in {listed(doubtful)}, whose "
            f"{'comma' if ',' in example else 'point'} can be a decimal mark or a thousands separator",
            argument=argument,
            value=doubtful,
            remedy="use decimal points and no thousands separators",
        )
    decimal = [name for name in values if name in commas or (commas and name in either)]
    grouped = [name for name in (*points, *either) if name not in decimal and frame[name].dtype.kind not in "iuf"]
    changed = {name: _numbers(values[name], ",", ".") for name in decimal}
    changed |= {name: _numbers(values[name], ".", ",") for name in grouped}
    with_comma = [name for name in decimal if values[name].str.contains(",").any()]
    without = [name for name in values if name in changed and name not in with_comma]
    notes = [f"Decimal commas were read in {listed(with_comma)}."] if with_comma else []
    notes += [f"Thousands separators were removed in {listed(without)}."] if without else []
    assumed = [name for name in either if name not in (*changed, *doubtful) and _is_doubtful(values[name], False)]
    notes += [f"The points in {listed(assumed)} were read as decimal points."] if assumed else []
    return frame.assign(**changed), notes


def _is_doubtful(column: pd.Series, decimal_points: bool) -> bool:
    """Whether a column with one kind of mark is ambiguous when no other column determines the decimal mark."""
    if column.str.contains(",").any():
        return True
    whole = pd.Series(column[~column.str.contains(".", regex=False)])
    return not decimal_points and 0 < len(whole) < len(column) and _all(whole, _BELOW_THOUSAND)


def _all(column: pd.Series, pattern: str) -> bool:
    return bool(column.str.fullmatch(pattern).all())


def _numbers(column: pd.Series, decimal: str, other: str) -> pd.Series:
    plain = column.str.replace(rf"[{other}{_BLANKS}]", "", regex=True).str.replace(decimal, ".", regex=False)
    return pd.Series(pd.to_numeric(plain))
