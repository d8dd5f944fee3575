"""Tasks from tables in memory: data frames, dictionaries of columns, and scikit-learn data sets."""

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

__all__ = ["task_from_table"]


def task_from_table(
    table: Any,
    *,
    target: str | Sequence[str] | None = None,
    name: str | None = None,
    drop: str | Sequence[str] = (),
    missing: Missing | None = None,
    standardise: bool | None = None,
    centre: bool = True,
    classification: bool | None = None,
    image_shape: tuple[int, int] | None = None,
) -> Task:
    """Make a task from a table in memory; `read_table` documents the arguments."""
    parts = BunchParts.of(table) if is_bunch(table) else None
    if name is None:
        name = parts.name if parts else "table"
    if parts:
        target = list(parts.targets) if target is None else target
        inputs, targets, notes = split_columns({**parts.inputs, **parts.targets}, target, drop, source=name)
    else:
        inputs, targets, notes = split_frame(_frame(table), target, drop, source=name, argument="table")
    if parts and not drop and image_shape is None:
        image_shape = parts.image_shape
    return assembled(
        inputs,
        targets,
        name=name,
        source=name,
        origin="were given as a table",
        notes=notes,
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
                f"table is not a dictionary of columns ({error})",
                argument="table",
                value=list(table),
                remedy="give a dictionary that maps column names to columns of equal length",
            ) from None
    frame = array_or_frame(table, "table")
    if isinstance(frame, pd.DataFrame):
        return frame
    raise InputError(
        f"table has type {type(table).__name__}",
        argument="table",
        value=type(table).__name__,
        remedy="give a data frame or the path of a file, or use Task(x, y) for arrays",
    )
