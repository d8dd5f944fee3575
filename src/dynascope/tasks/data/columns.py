"""Which columns of a table are inputs, which are targets, and which are left out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from dynascope.arguments import require

__all__ = ["listed", "said_to_drop", "split_columns"]

_NAMES_LISTED = 12


def split_columns(
    columns: Mapping[str, pd.Series],
    target: str | Sequence[str] | None,
    drop: str | Sequence[str] = (),
    *,
    source: str,
) -> tuple[dict[str, pd.Series], dict[str, pd.Series]]:
    """Split the columns of a table into inputs and targets.

    Args:
        columns: The columns by name.
        target: The name of the target column, or several.
        drop: The name of a column that is neither, or several.
        source: What the table is called in messages.

    Raises:
        InputError: No target, a name that is not a column or is both, or no column left for the inputs.

    Example:
        >>> columns = {name: pd.Series([0.0]) for name in "abcd"}
        >>> [list(part) for part in split_columns(columns, "b", "d", source="table")]
        [['a', 'c'], ['b']]
    """
    wanted, dropped = _names("target", target), _names("drop", drop)
    require(
        bool(wanted),
        f"no target column of {source} is named",
        argument="target",
        value=target,
        remedy=f"choose from {listed(columns)}",
    )
    for argument, names in (("target", wanted), ("drop", dropped)):
        for name in names:
            _require_column(name, columns, argument, source)
    both = [name for name in dropped if name in wanted]
    require(
        not both,
        f"{listed(both)} is a target and dropped",
        argument="drop",
        value=both,
        remedy="name it once",
    )
    inputs = {name: column for name, column in columns.items() if name not in (*wanted, *dropped)}
    require(
        bool(inputs),
        f"every column of {source} is {'dropped or ' if dropped else ''}a target",
        argument="target",
        value=wanted,
        remedy="leave at least one column as an input, with a comma, semicolon or tab between columns",
    )
    return inputs, {name: columns[name] for name in wanted}


def said_to_drop(drop: str | Sequence[str]) -> list[str]:
    """A sentence that names the columns that were dropped, if there are any.

    Example:
        >>> said_to_drop(["a", "b"])
        ["Left out as was asked: 'a', 'b'."]
    """
    names = _names("drop", drop)
    return [f"Left out as was asked: {listed(names)}."] if names else []


def listed(names: Iterable[str]) -> str:
    """The names in quotes, the first dozen of them.

    Example:
        >>> listed(["a", "b"])
        "'a', 'b'"
    """
    names = list(names)
    more = f" and {len(names) - _NAMES_LISTED} more" if len(names) > _NAMES_LISTED else ""
    return ", ".join(map(repr, names[:_NAMES_LISTED])) + more


def _names(argument: str, given: Any) -> list[str]:
    if given is None or isinstance(given, str | int):
        return [] if given is None else [str(given)]
    require(
        isinstance(given, list | tuple) and all(isinstance(each, str | int) for each in given),
        f"{argument} is of the type {type(given).__name__}",
        argument=argument,
        value=type(given).__name__,
        remedy="name columns of the table, one or several in a list",
    )
    return list(dict.fromkeys(map(str, given)))


def _require_column(name: str, columns: Mapping[str, pd.Series], argument: str, source: str) -> None:
    close = difflib.get_close_matches(str(name), columns, 1)
    require(
        name in columns,
        f"{source} has no column {name!r}",
        argument=argument,
        value=name,
        remedy=f"choose {close[0]!r} or another of {listed(columns)}" if close else f"choose from {listed(columns)}",
    )
