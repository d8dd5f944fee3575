"""Files of tables: named columns, some of them targets."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from dynascope.arguments import require
from dynascope.errors import InputError

__all__ = ["listed", "read_table", "split_columns"]

_NAMES_LISTED = 12


def read_table(path: Path) -> dict[str, pd.Series]:
    """Read the columns of a `.csv` or `.parquet` table by name.

    Raises:
        InputError: A file that is not a table whose columns all have a name of their own.
    """
    try:
        if path.suffix.lower() == ".parquet":
            table = pd.read_parquet(path)
            header = [str(name) for name in table.columns]
        else:
            # The header is read apart because pandas renames the second of two equal names; with one row of values,
            # because it would take those beyond the header's last name to number the rows.
            names = pd.read_csv(path, header=None, nrows=2, dtype=str, keep_default_na=False, skipinitialspace=True)
            table = pd.read_csv(path, low_memory=False, skipinitialspace=True)
            header = names.iloc[0].tolist()
    except Exception as error:  # damaged files raise a dozen types, most of them undocumented
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise InputError(
            f"{path.name} cannot be read as a table ({reason})",
            argument="path",
            value=str(path),
            remedy="write it with pandas.DataFrame.to_parquet"
            if path.suffix.lower() == ".parquet"
            else "write it in UTF-8 with commas between columns and one row of column names",
        ) from None
    repeated = sorted({name for name in header if header.count(name) > 1})
    problem, remedy = "", ""
    if "" in header:
        problem = f"column {header.index('') + 1} of {path.name} has no name"
        remedy = "name it, or leave it out if it numbers the rows"
    elif repeated:
        problem, remedy = f"{path.name} has several columns named {listed(repeated)}", "give each its own name"
    require(not problem, problem, argument="path", value=str(path), remedy=remedy)
    return dict(zip(header, (column for _, column in table.items()), strict=True))


def split_columns(
    columns: dict[str, pd.Series], target: str | Sequence[str] | None, *, source: str
) -> tuple[dict[str, pd.Series], dict[str, pd.Series]]:
    """Split the columns of a table into inputs and targets.

    Args:
        columns: The columns by name.
        target: The name of the target column, or several.
        source: What the table is called in messages.

    Raises:
        InputError: No target, one that is not a column, or no column left for the inputs.

    Example:
        >>> columns = {name: pd.Series([0.0]) for name in "abc"}
        >>> [list(part) for part in split_columns(columns, "b", source="table")]
        [['a', 'c'], ['b']]
    """
    wanted = [target] if isinstance(target, str) else list(dict.fromkeys(target or ()))
    require(
        bool(wanted),
        f"no target column of {source} is named",
        argument="target",
        value=target,
        remedy=f"choose from {listed(columns)}",
    )
    for name in wanted:
        close = difflib.get_close_matches(name, columns, 1)
        require(
            name in columns,
            f"{source} has no column {name!r}",
            argument="target",
            value=name,
            remedy=f"choose {close[0]!r} or another of {listed(columns)}"
            if close
            else f"choose from {listed(columns)}",
        )
    inputs = {name: column for name, column in columns.items() if name not in wanted}
    require(
        bool(inputs),
        f"every column of {source} is a target",
        argument="target",
        value=wanted,
        remedy="leave at least one column as an input, with a comma between columns",
    )
    return inputs, {name: columns[name] for name in wanted}


def listed(names: Iterable[str]) -> str:
    """The names in quotes, the first dozen of them.

    Example:
        >>> listed(["a", "b"])
        "'a', 'b'"
    """
    names = list(names)
    more = f" and {len(names) - _NAMES_LISTED} more" if len(names) > _NAMES_LISTED else ""
    return ", ".join(map(repr, names[:_NAMES_LISTED])) + more
