"""Inputs that tell rows apart and say nothing more."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from dynascope.arguments import require
from dynascope.tasks.data.column_kinds import is_written_number, kind_of, refused
from dynascope.tasks.data.columns import listed

__all__ = ["without_identifiers"]

_FEWEST = 10  # rows in which whole numbers one after the other are no chance


def without_identifiers(inputs: Mapping[str, pd.Series], *, source: str) -> tuple[dict[str, pd.Series], list[str]]:
    """The inputs without columns of text that identify rows, and sentences that name them.

    A column identifies rows if more than half of them have a value that no other row has. From such a name or number
    of a person nothing can be learned that holds of others. Whole numbers that count the rows may mean something, such
    as years, so they stay, and a sentence names them.

    Raises:
        InputError: No input is left, or some hold what cannot be encoded, such as dates.

    Example:
        >>> inputs = {"name": pd.Series(["Ann", "Bo", "Cy"]), "age": pd.Series([31, 35, 33])}
        >>> kept, notes = without_identifiers(inputs, source="table")
        >>> list(kept), notes
        (['age'], ["Left out, since nearly every row has another value: 'name'."])
    """
    other = {name: each for name, each in inputs.items() if kind_of(each) in ("date", "other")}
    written = {name: each for name, each in inputs.items() if kind_of(each) == "text" and is_written_number(each)}
    if other or written:
        raise refused(other or written, "input", source)
    names = [name for name, each in inputs.items() if kind_of(each) in ("text", "category") and _identifies(each)]
    kept = {name: each for name, each in inputs.items() if name not in names}
    require(
        bool(kept),
        f"every input of {source} is text that has another value in nearly every row",
        argument="path",
        value=names,
        remedy="give inputs that are numbers or repeat",
    )
    told = [f"Left out, since nearly every row has another value: {listed(names)}."] if names else []
    counting = [name for name, each in kept.items() if _counts(each)]
    if counting:
        told.append(f"Whole numbers that count the rows, kept as an input: {listed(counting)}; --drop leaves it out.")
    return kept, told


def _identifies(column: pd.Series) -> bool:
    counts = column.value_counts()
    return 2 * int((counts == 1).sum()) > len(column.dropna())


def _counts(column: pd.Series) -> bool:
    """Whether the numbers go up by one from each row to the next."""
    if kind_of(column) != "integer" or column.isna().any() or len(column) < _FEWEST:
        return False
    return bool((np.diff(column.to_numpy(dtype=np.float64)) == 1).all())
