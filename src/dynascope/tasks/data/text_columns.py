"""Inputs of text: one 0-or-1 column for each value, or a single one for two."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float

from dynascope.arguments import require
from dynascope.tasks.data.column_kinds import kind_of, to_numbers
from dynascope.tasks.data.columns import listed

__all__ = ["encode_text"]

_LABELS = ("text", "category")
_MOST_VALUES = 1000
_PAIR = 2  # values, which mirror each other


def encode_text(
    inputs: Mapping[str, pd.Series], *, source: str
) -> tuple[Float[np.ndarray, "n d"], tuple[str, ...], list[str]]:
    """The inputs as numbers, gaps as NaN, with a column "kind=oak" for each value of a column of text or categories.

    Two values make a single column, 1 for the later one in the alphabet: a second would be its mirror image, and which
    of the two a network takes up would be left to chance.

    Returns:
        Values, their names, and sentences that say what was encoded.

    Raises:
        InputError: A column holds neither numbers nor text, or too many values.

    Example:
        >>> inputs = {"kind": pd.Series(["oak", "elm", "oak"]), "age": pd.Series([31, 35, 33])}
        >>> values, names, notes = encode_text(inputs, source="table")
        >>> names, notes
        (('kind=oak', 'age'), ["Text of two values is one column of 1 and 0: 'kind=oak' (0 is 'elm')."])
    """
    encoded: dict[str, pd.Series] = {}
    counts: dict[str, int] = {}
    pairs: list[str] = []
    for name, column in inputs.items():
        if kind_of(column) not in _LABELS:
            encoded[name] = column
            continue
        labels = column.astype(object).map(lambda value: str(value).strip(), na_action="ignore")
        values = sorted(labels.dropna().unique())
        require(
            len(values) <= _MOST_VALUES,
            f"{source} has {len(values)} values of text in the input {name!r}",
            argument="path",
            value=len(values),
            remedy=f"group them into at most {_MOST_VALUES}, or leave it out (drop=, on the command line --drop)",
        )
        if len(values) == _PAIR:
            pairs.append(f"{f'{name}={values[1]}'!r} (0 is {values[0]!r})")
        else:
            counts[name] = len(values)
        gaps, kept = labels.isna(), values[1:] if len(values) == _PAIR else values
        new = {f"{name}={value}": (labels == value).astype(np.float64).mask(gaps) for value in kept}
        taken = [each for each in new if each in inputs or each in encoded]
        require(
            not taken,
            f"{source} has a column {listed(taken)}, as a value of {name!r} would be called",
            argument="path",
            value=taken,
            remedy="give one of them another name, or leave it out (drop=, on the command line --drop)",
        )
        encoded |= new
    told = ", ".join(f"{name!r} ({count} value{'s' if count != 1 else ''})" for name, count in counts.items())
    notes = [f"Text of two values is one column of 1 and 0: {', '.join(pairs)}."] if pairs else []
    notes += [f"Text is one-hot encoded: {told}."] if counts else []
    return to_numbers(encoded, "input", source), tuple(encoded), notes
