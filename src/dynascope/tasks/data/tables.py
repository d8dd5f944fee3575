"""Tasks from tables in memory: data frames, dictionaries of columns, and data sets of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from dynascope.errors import InputError
from dynascope.tasks.data.column_roles import split_columns, split_frame
from dynascope.tasks.data.missing_values import Missing
from dynascope.tasks.data.plain_arrays import array_or_frame
from dynascope.tasks.data.sklearn_data import BunchParts, is_bunch
from dynascope.tasks.data.table_task import assembled
from dynascope.tasks.task import Task

__all__ = ["from_table"]


def from_table(
    table: Any,
    *,
    target: str | Sequence[str] | None = None,
    name: str | None = None,
    drop: str | Sequence[str] = (),
    missing: Missing | None = None,
    standardise: bool | None = None,
    centre: bool = True,
    classification: bool | None = None,
) -> Task:
    """Make a task of a data frame, as `from_file` does of a table in a file.

    Columns are encoded, standardised and described as by `from_file`.

    Args:
        table: A data frame of pandas, or of a library that knows the way there (polars, Arrow); a dictionary of columns
            by name; or a data set of scikit-learn, which knows its targets.
        target: The name of the target column, or several.
        name: Name of the task; that of a data set of scikit-learn if not given, else "table".
        drop: The name of a column to leave out, or several.
        missing: What is done about missing or infinite values: None refuses them, "drop" leaves out the rows, "mean"
            fills inputs by the mean of their column and leaves out rows without a target.
        standardise: Whether to bring inputs, and targets that are quantities, to mean 0 and spread 1; None does so
            unless `centre` is off or they are images.
        centre: Remove the mean of every input and target.
        classification: Whether the target is a class label; None decides as `from_file` does.

    Raises:
        InputError: It is no table, or does not hold at least two complete samples of what can be encoded.

    Example:
        >>> trees = pd.DataFrame({"height": [9.0, 7.0, 8.0], "girth": [1.0, 3.0, 2.5], "age": [60.0, 90.0, 84.0]})
        >>> task = from_table(trees, target="age", name="trees")
        >>> task
        Task('trees', 3 × 2 → 1)
        >>> task.description[-1]
        "Inputs and target are standardised (mean 0, spread 1): a loss times 168 is in units of 'age' squared."
    """
    parts = BunchParts.of(table) if is_bunch(table) else None
    if name is None:
        name = parts.name if parts else "table"
    if parts:
        target = list(parts.targets) if target is None else target
        inputs, targets, told = split_columns({**parts.inputs, **parts.targets}, target, drop, source=name)
    else:
        inputs, targets, told = split_frame(_frame(table), target, drop, source=name, argument="table")
    image_shape = parts.image_shape if parts and not drop else None
    return assembled(
        inputs,
        targets,
        name=name,
        source=name,
        came="were given as a table",
        told=told,
        text=True,
        image_shape=image_shape,
        missing=missing,
        classification=classification,
        centre=centre,
        standardise=centre and image_shape is None if standardise is None else standardise,
    )


def _frame(table: Any) -> pd.DataFrame:
    if isinstance(table, Mapping):
        try:
            return pd.DataFrame(dict(table))
        except ValueError as error:
            raise InputError(
                f"table is no dictionary of columns ({error})",
                argument="table",
                value=list(table),
                remedy="give columns of equal length by name",
            ) from None
    frame = array_or_frame(table, "table") if not isinstance(table, str) else None
    if isinstance(frame, pd.DataFrame):
        return frame
    raise InputError(
        f"table is of the type {type(table).__name__}",
        argument="table",
        value=type(table).__name__,
        remedy="give a data frame; a file by from_file(path, target=…), arrays by Task(x, y)",
    )
