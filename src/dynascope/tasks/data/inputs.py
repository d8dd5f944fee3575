"""Inputs of a table as numbers: text that only names rows is left out, other text is one-hot encoded."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float

from dynascope.tasks.data.column_names import listed
from dynascope.tasks.data.columns import Column, not_numbers, to_numbers
from dynascope.validation import require

__all__ = ["encode_inputs", "without_identifiers"]

_FEWEST = 10  # rows in which consecutive whole numbers are no chance
_MOST_VALUES = 1000
_PAIR = 2  # values, which mirror each other


def without_identifiers(inputs: Mapping[str, Column], *, source: str) -> tuple[dict[str, Column], list[str]]:
    """The inputs without columns of text that identify rows, and sentences that name them.

    A column identifies rows if more than half of them have a value that no other row has. Nothing that holds of other
    rows can be learned from such a name. Whole numbers that count the rows may mean something, such as years, so they
    stay, and a sentence names them.

    Raises:
        InputError: No input is left, or some hold what cannot be encoded, such as dates.

    Example:
        >>> inputs = {"name": Column.of(["Ann", "Bo", "Cy"]), "age": Column.of([31, 35, 33])}
        >>> kept, notes = without_identifiers(inputs, source="table")
        >>> list(kept), notes
        (['age'], ["Left out, since nearly every row has another value: 'name'."])
    """
    for kinds in (("date", "other"), ("written number",)):
        other = {name: each for name, each in inputs.items() if each.kind in kinds}
        if other:
            raise not_numbers(other, "input", source)
    names = [name for name, each in inputs.items() if each.label and _identifies(each.values)]
    kept = {name: each for name, each in inputs.items() if name not in names}
    require(
        bool(kept),
        f"every input of {source} is text that has another value in nearly every row",
        argument="path",
        value=names,
        remedy="give inputs that are numbers or repeat",
    )
    notes = [f"Left out, since nearly every row has another value: {listed(names)}."] if names else []
    counting = [name for name, each in kept.items() if _counts_rows(each)]
    if counting:
        notes.append(f"Whole numbers that count the rows, kept as an input: {listed(counting)}; `drop` leaves it out.")
    return kept, notes


def encode_inputs(
    inputs: Mapping[str, Column], *, source: str
) -> tuple[Float[np.ndarray, "n d"], tuple[str, ...], list[str]]:
    """The inputs as numbers, gaps as NaN, with a column "kind=oak" for each value of a column of text or categories.

    Two values make a single column, 1 for the later one in the alphabet: a second would be its mirror image, and which
    of the two a network takes up would be left to chance.

    Returns:
        Values, their names, and sentences that say what was encoded.

    Raises:
        InputError: A column holds neither numbers nor text, or too many values.

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
            f"{source} has {len(values)} values of text in the input {name!r}",
            argument="path",
            value=len(values),
            remedy=f"group them into at most {_MOST_VALUES}, or leave it out with `drop`",
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
            f"{source} has a column {listed(taken)}, as a value of {name!r} would be called",
            argument="path",
            value=taken,
            remedy="give one of them another name, or leave it out with `drop`",
        )
        encoded |= {str(each): Column(values, "number") for each, values in new.items()}
    notes = [f"Text columns with two values become 1 and 0: {', '.join(pairs)}."] if pairs else []
    notes += [f"Text is one-hot encoded: {', '.join(counts)}."] if counts else []
    return to_numbers(encoded, "input", source), tuple(encoded), notes


def _identifies(values: pd.Series) -> bool:
    counts = values.value_counts()
    return 2 * int((counts == 1).sum()) > int(values.count())


def _counts_rows(column: Column) -> bool:
    """Whether the numbers go up by one from each row to the next."""
    if column.kind != "integer" or column.gaps.any() or len(column) < _FEWEST:
        return False
    return bool((np.diff(column.numbers) == 1).all())
