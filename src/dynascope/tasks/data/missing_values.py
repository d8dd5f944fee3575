"""Missing and infinite values: rejection, removal of rows, or replacement by column means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from jaxtyping import Float

from dynascope.tasks.data.column_names import counted, listed
from dynascope.tasks.data.columns import Column
from dynascope.validation import require

__all__ = ["Missing", "filled", "without_gaps"]

Missing = Literal["mean", "drop"]

_FEWEST = 2  # rows that a task needs


def without_gaps(
    inputs: Mapping[str, Column], targets: Mapping[str, Column], missing: Missing | None, *, source: str
) -> tuple[dict[str, Column], dict[str, Column], list[str]]:
    """Remove rows with missing values or, if missing inputs will be replaced, only rows with missing targets.

    Args:
        inputs: Columns of the inputs.
        targets: Columns of the targets.
        missing: "drop" removes all rows with missing values, "mean" removes only rows without targets, None raises an
            error.
        source: Name of the table in errors.

    Returns:
        Inputs, targets, and a sentence about the removed rows.

    Raises:
        InputError: If values are missing and `missing` is None, or if fewer than two rows remain.
    """
    require(
        missing in (None, "mean", "drop"),
        f"missing is {missing!r}",
        argument="missing",
        value=missing,
        remedy='choose "mean" or "drop"',
    )
    examined = dict(targets) if missing == "mean" else {**inputs, **targets}
    counts = {name: int(column.gaps.sum()) for name, column in examined.items() if column.gaps.any()}
    if not counts:
        return dict(inputs), dict(targets), []
    kept = ~np.any([examined[name].gaps for name in counts], axis=0)
    rows = f"{(~kept).sum()} row{'s' if (~kept).sum() > 1 else ''}"
    label = all(name in targets and targets[name].label for name in counts)
    lacking = f"{rows} {'without a label' if label else 'with missing or infinite values'}"
    most = max((name for name in counts if name in inputs), key=counts.__getitem__, default=None)
    require(
        missing is not None,
        f"{source} has {lacking} in {listed(counts)}",
        argument="missing",
        value=counts,
        remedy='set `missing` to "drop" or "mean"'
        + (f", or use `drop` to leave out {most!r} ({counts[most]} missing)" if most is not None else ""),
    )
    require(
        kept.sum() >= _FEWEST,
        f"{source} has too few rows without missing values in {listed(counts)} ({kept.sum()} of {len(kept)})",
        argument="missing",
        value=missing,
        remedy='use `drop` to leave out columns with many missing values, or set `missing` to "mean"',
    )
    inputs, targets = ({name: each.rows(kept) for name, each in columns.items()} for columns in (inputs, targets))
    return inputs, targets, [f"Left out: {lacking} in {counted(counts)}."]


def filled(
    values: Float[np.ndarray, "n d"], names: tuple[str, ...], *, source: str
) -> tuple[Float[np.ndarray, "n d"], list[str]]:
    """Replace values that are not finite with the mean of their column.

    Args:
        values: Numbers, shape (n, d).
        names: Names of the columns.
        source: Name of the table in errors.

    Returns:
        The numbers, and a sentence about the filled columns.

    Raises:
        InputError: If a column has no finite value.

    Example:
        >>> filled(np.array([[1.0], [np.nan], [3.0]]), ("age",), source="table")[1]
        ["Replaced by the mean of their column: missing or infinite values in 'age' (1)."]
    """
    finite = np.isfinite(values)
    counts = {name: int(gaps) for name, gaps in zip(names, (~finite).sum(axis=0), strict=True) if gaps}
    if not counts:
        return values, []
    empty = [name for name, count in counts.items() if count == len(values)]
    require(
        not empty,
        f"{source} has no values in {listed(empty)}",
        argument="missing",
        value=empty,
        remedy="leave the column out with `drop`",
    )
    means = np.where(finite, values, 0.0).sum(axis=0) / finite.sum(axis=0)
    sentence = f"Replaced by the mean of their column: missing or infinite values in {counted(counts)}."
    return np.where(finite, values, means), [sentence]
