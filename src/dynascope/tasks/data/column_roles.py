"""Division of the columns of a table into inputs, targets and dropped columns."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from dynascope.tasks.data.column_names import is_unnamed, listed
from dynascope.tasks.data.columns import Column, columns_of
from dynascope.validation import require

__all__ = ["split_columns", "split_frame"]


def split_frame(
    frame: pd.DataFrame,
    target: str | Sequence[str] | None,
    drop: str | Sequence[str] = (),
    *,
    source: str,
    argument: str,
) -> tuple[dict[str, Column], dict[str, Column], list[str]]:
    """Split the columns of a data frame as `split_columns` does, excluding the index.

    Raises:
        InputError: If two columns have the same name, or if `split_columns` raises an error.

    Example:
        >>> frame = pd.DataFrame({"a": [1.0, 2.0], "y": [2.0, 1.0]}, index=["oak", "elm"])
        >>> split_frame(frame, "y", source="table", argument="table")[2]
        ['Left out: the index, because it names the rows (reset_index() in pandas makes it a column).']
    """
    inputs, targets, notes = split_columns(columns_of(frame, "x", argument=argument), target, drop, source=source)
    if frame.index.equals(pd.RangeIndex(len(frame))) and not any(frame.index.names):
        return inputs, targets, notes
    names = "".join(f" {name!r}" for name in frame.index.names if name is not None)
    left_out = f"Left out: the index{names}, because it names the rows (reset_index() in pandas makes it a column)."
    return inputs, targets, [*notes, left_out]


def split_columns(
    columns: Mapping[str, Column],
    target: str | Sequence[str] | None,
    drop: str | Sequence[str] = (),
    *,
    source: str,
) -> tuple[dict[str, Column], dict[str, Column], list[str]]:
    """Split the columns of a table into inputs and targets.

    Unnamed columns at the beginning are left out if they name or number the rows.

    Args:
        columns: The columns by name.
        target: Name of the target column, or several names.
        drop: Name of a column to leave out, or several names; "" stands for all unnamed columns.
        source: Name of the table in messages.

    Returns:
        Inputs, targets, and sentences that list the columns left out.

    Raises:
        InputError: If no target is given, if a name is not a column or is both a target and dropped, if an unnamed
            column does not name the rows, or if no input column remains.

    Example:
        >>> columns = {name: Column.of([0.5, 0.0]) for name in "abcd"}
        >>> inputs, targets, notes = split_columns(columns, "b", "d", source="table")
        >>> list(inputs), list(targets), notes
        (['a', 'c'], ['b'], ["Left out as requested: 'd'."])
    """
    wanted, dropped = _names("target", target), _names("drop", drop)
    unnamed = [name for name in columns if is_unnamed(name)]
    if "" in dropped and unnamed:
        dropped = [name for name in columns if name in dropped or name in unnamed]
    require(
        bool(wanted),
        f"no target column of {source} is given",
        argument="target",
        value=target,
        remedy=f"choose `target` from {listed(columns)}",
    )
    for argument, name in [*(("target", name) for name in wanted), *(("drop", name) for name in dropped)]:
        close = difflib.get_close_matches(name, columns, 1)
        require(
            name in columns,
            f"{source} has no column {name!r}",
            argument=argument,
            value=name,
            remedy=f"choose {f'{close[0]!r} or another of' if close else 'from'} {listed(columns)}",
        )
    both = [name for name in dropped if name in wanted]
    problem = f"both target and drop contain {listed(both)}"
    require(not both, problem, argument="drop", value=both, remedy="list each column in only one of these arguments")
    rows = _row_names(columns, wanted, dropped, source)
    inputs = {name: column for name, column in columns.items() if name not in (*wanted, *dropped, *rows)}
    require(
        bool(inputs),
        f"every column of {source} is {'dropped or ' if dropped else ''}a target",
        argument="target",
        value=wanted,
        remedy="keep at least one column as an input, and separate columns by commas, semicolons or tabs",
    )
    notes = [f"Left out as requested: {listed(dropped)}."] if dropped else []
    places = [list(columns).index(name) + 1 for name in rows]
    notes += [f"Left out: column {place}, which has no name and only numbers or names the rows." for place in places]
    return inputs, {name: columns[name] for name in wanted}, notes


def _row_names(columns: Mapping[str, Column], targets: Sequence[str], dropped: Sequence[str], source: str) -> list[str]:
    """The unnamed columns at the beginning, which must name the rows; all other columns must have a name."""
    kept = [name for name in columns if name not in dropped]
    unnamed = [name for name in kept if is_unnamed(name) and name not in targets]
    for place, name in enumerate(unnamed):
        first = name == kept[place]
        require(
            first and columns[name].names_rows,
            f"column {list(columns).index(name) + 1} of {source} has no name"
            + (", and its values do not number or name the rows" if first else ""),
            argument="path",
            value=name,
            remedy='name the column, or leave it out with `drop=""`',
        )
    return unnamed


def _names(argument: str, given: Any) -> list[str]:
    if given is None or isinstance(given, str | int):
        return [] if given is None else [str(given)]
    require(
        isinstance(given, list | tuple) and all(isinstance(each, str | int) for each in given),
        f"{argument} has type {type(given).__name__}",
        argument=argument,
        value=type(given).__name__,
        remedy="give the name of a column, or a list of names",
    )
    return list(dict.fromkeys(map(str, given)))
