"""Missing values: refused, left out with their rows, or filled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from jaxtyping import Float

from dynascope.arguments import require
from dynascope.tasks.data.columns import Column
from dynascope.tasks.data.names import listed

__all__ = ["Missing", "filled", "without_gaps"]

Missing = Literal["mean", "drop"]

_FEWEST = 2  # rows that a task needs
_LISTED = 12  # columns


def without_gaps(
    inputs: Mapping[str, Column], targets: Mapping[str, Column], missing: Missing | None, *, source: str
) -> tuple[dict[str, Column], dict[str, Column], list[str]]:
    """The columns without the rows in which a value is missing; to be filled, only without those that have no target.

    Args:
        inputs: Columns of the inputs.
        targets: Columns of the targets.
        missing: "drop" leaves rows out, "mean" keeps those whose inputs can be filled, None refuses.
        source: What the table is called in messages.

    Returns:
        Inputs, targets, and sentences that say what was left out.

    Raises:
        InputError: Values are missing and nothing says what to do, or fewer than two rows are left.
    """
    require(
        missing in (None, "mean", "drop"),
        f"missing is {missing!r}",
        argument="missing",
        value=missing,
        remedy='choose "mean" or "drop"',
    )
    looked_at = dict(targets) if missing == "mean" else {**inputs, **targets}
    gaps = {name: column.gaps for name, column in looked_at.items() if column.gaps.any()}
    if not gaps:
        return dict(inputs), dict(targets), []
    bad = np.logical_or.reduce(list(gaps.values()))
    rows, places = f"{bad.sum()} row{'s' if bad.sum() != 1 else ''}", listed(gaps)
    label = len(gaps) == 1 and all(name in targets and targets[name].label for name in gaps)
    lacking = "without a label" if label else "with missing or infinite values"
    counts = {name: int(each.sum()) for name, each in gaps.items()}
    most = max((name for name in counts if name in inputs), key=counts.__getitem__, default=None)
    other = "" if most is None else f", or leave out {most!r} (drop=, --drop), which lacks {counts[most]}"
    require(
        missing is not None,
        f"{source} has {rows} {lacking} in {places}",
        argument="missing",
        value=counts,
        remedy=f'drop or fill them (missing="drop" or "mean", on the command line --missing){other}',
    )
    require(
        (~bad).sum() >= _FEWEST,
        f"{(~bad).sum()} of {len(bad)} rows of {source} are left without those that lack {places}",
        argument="missing",
        value=missing,
        remedy="leave out columns with many gaps (drop=, on the command line --drop), or fill them by their mean",
    )
    kept = np.flatnonzero(~bad)
    inputs = {name: column.rows(kept) for name, column in inputs.items()}
    targets = {name: column.rows(kept) for name, column in targets.items()}
    return inputs, targets, [f"Left out: {rows} {lacking} in {_counted(gaps)}."]


def filled(
    values: Float[np.ndarray, "n d"], names: tuple[str, ...], *, source: str
) -> tuple[Float[np.ndarray, "n d"], list[str]]:
    """The numbers with the mean of its column in place of each that is not finite, and a sentence that says so.

    Raises:
        InputError: A column has no number at all.

    Example:
        >>> filled(np.array([[1.0], [np.nan], [3.0]]), ("age",), source="table")[1]
        ["Filled by the mean of their column: missing or infinite values in 'age' (1)."]
    """
    finite = np.isfinite(values)
    if finite.all():
        return values, []
    empty = [name for i, name in enumerate(names) if not finite[:, i].any()]
    require(
        not empty,
        f"{source} has no value at all in {listed(empty)}",
        argument="missing",
        value=empty,
        remedy="leave it out (drop=, on the command line --drop)",
    )
    means = np.where(finite, values, 0.0).sum(axis=0) / finite.sum(axis=0)
    gaps = {name: ~finite[:, i] for i, name in enumerate(names) if not finite[:, i].all()}
    sentence = f"Filled by the mean of their column: missing or infinite values in {_counted(gaps)}."
    return np.where(finite, values, means), [sentence]


def _counted(gaps: Mapping[str, np.ndarray]) -> str:
    """The columns with gaps, and how many each has."""
    first = list(gaps)[:_LISTED]
    more = f" and {len(gaps) - len(first)} more" if len(gaps) > len(first) else ""
    return ", ".join(f"{name!r} ({int(gaps[name].sum())})" for name in first) + more
