"""Numeric inputs from table columns: identifiers are left out, and other text is one-hot encoded."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float

from dynascope.tasks.data.column_names import listed
from dynascope.tasks.data.columns import Column, not_numbers, to_numbers
from dynascope.validation import require

__all__ = ["encode_inputs", "without_identifiers"]

_FEWEST = 10  # rows for which consecutive integers are unlikely to be a coincidence
_MOST_VALUES = 1000
_PAIR = 2  # values, encoded by a single column


def without_identifiers(inputs: Mapping[str, Column], *, source: str) -> tuple[dict[str, Column], list[str]]:
    """Remove text columns that identify rows, and return sentences that list them.

    A text column identifies rows if more than half of its values occur only once. Such a column does not generalise to
    other rows. Columns of consecutive integers can be meaningful, for example years. They are kept and listed.

    Raises:
        InputError: If no input remains, or if an input cannot be encoded, such as a date.

    Example:
        >>> inputs = {"name": Column.of(["Ann", "Bo", "Cy"]), "age": Column.of([31, 35, 33])}
        >>> kept, notes = without_identifiers(inputs, source="table")
        >>> list(kept), notes
        (['age'], ["Left out, because nearly every row has a different value: 'name'."])
    """
    for kinds in (("date", "other"), ("written number",)):
        other = {name: each for name, each in inputs.items() if each.kind in kinds}
        if other:
            raise not_numbers(other, "input", source)
    names = [name for name, each in inputs.items() if each.label and _identifies(each.values)]
    kept = {name: each for name, each in inputs.items() if name not in names}
    require(
        bool(kept),
        f"every input of {source} is text with a different value in nearly every row",
        argument="path",
        value=names,
        remedy="give numeric inputs, or text with repeated values",
    )
    notes = [f"Left out, because nearly every row has a different value: {listed(names)}."] if names else []
    counting = [name for name, each in kept.items() if _counts_rows(each)]
    if counting:
        notes.append(f"Integers that count the rows, kept as an input: {listed(counting)}; `drop` leaves it out.")
    return kept, notes


def encode_inputs(
    inputs: Mapping[str, Column], *, source: str
) -> tuple[Float[np.ndarray, "n d"], tuple[str, ...], list[str]]:
    """Convert inputs to numbers, with one-hot encoded text and NaN for missing values.

    Each value of a text or categorical column becomes a column such as "kind=oak". A column with two values becomes a
    single column, 1 for the alphabetically later value. A second column would be perfectly anticorrelated with the
    first, and chance would decide which of the two a network uses.

    Returns:
        Values, names of the columns, and sentences that list the encoded columns.

    Raises:
        InputError: If a column is neither numeric nor text, has too many different values, or if a new column would
            have a name that is already in use.

    Example:
        >>> inputs = {"kind": Column.of(["oak", "elm", "oak"]), "age": Column.of([31, 35, 33])}
        >>> values, names, notes = encode_inputs(inputs, source="table")
        >>> names, notes
        (('kind=oak', 'age'), ["Text columns with two values become 1 and 0: 'kind=oak' (0 is 'elm')."])
    """
    encoded: dict[str, Column] = {}
    counts: list[str] = []
    pairs: list[str] = []
    for name, column in inputs.items():
        if not column.label:
            encoded[name] = column
            continue
        words = column.values.astype(object).map(lambda value: str(value).strip(), na_action="ignore")
        values = sorted(words.dropna().unique())
        require(
            len(values) <= _MOST_VALUES,
            f"{source} has {len(values)} different text values in the input {name!r}",
            argument="path",
            value=len(values),
            remedy=f"group these values into at most {_MOST_VALUES}, or leave the column out with `drop`",
        )
        paired = len(values) == _PAIR
        new = pd.get_dummies(words, prefix=name, prefix_sep="=", dtype=float, drop_first=paired)
        new[column.gaps] = np.nan
        if paired:
            pairs.append(f"{new.columns[0]!r} (0 is {values[0]!r})")
        else:
            counts.append(f"{name!r} ({len(values)} value{'s' if len(values) != 1 else ''})")
        taken = [each for each in new if each in inputs or each in encoded]
        require(
            not taken,
            f"{source} has a column {listed(taken)}, which is also the name of an encoded value of {name!r}",
            argument="path",
            value=taken,
            remedy="rename one of the columns, or leave one out with `drop`",
        )
        encoded |= {str(each): Column(values, "number") for each, values in new.items()}
    notes = [f"Text columns with two values become 1 and 0: {', '.join(pairs)}."] if pairs else []
    notes += [f"Text is one-hot encoded: {', '.join(counts)}."] if counts else []
    return to_numbers(encoded, "input", source), tuple(encoded), notes


def _identifies(values: pd.Series) -> bool:
    counts = values.value_counts()
    return 2 * int((counts == 1).sum()) > int(values.count())


def _counts_rows(column: Column) -> bool:
    """Whether the values increase by one from each row to the next."""
    if column.kind != "integer" or column.gaps.any() or len(column) < _FEWEST:
        return False
    return bool((np.diff(column.numbers) == 1).all())
