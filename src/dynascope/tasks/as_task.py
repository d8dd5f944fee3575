"""Conversion of arrays and scikit-learn data sets to tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from dynascope.errors import InputError
from dynascope.protocols import Learnable
from dynascope.tasks.data.sklearn_data import BunchParts, is_bunch
from dynascope.tasks.data.table_task import assembled
from dynascope.tasks.task import Task

__all__ = ["TaskLike", "as_task"]

# `as_task` rejects all other types and names a suitable replacement.
TaskLike: TypeAlias = Learnable | Sequence[Any] | Mapping[str, Any] | Any


def as_task(data: Any) -> Learnable:
    """Convert a pair (inputs, targets) or a scikit-learn data set to a task, without rescaling; return tasks unchanged.

    Args:
        data: A task of any kind, a pair of arguments for `Task`, or a scikit-learn data set.

    Raises:
        InputError: If the data has an unsupported type or invalid values.

    Example:
        >>> as_task(([[1.0], [2.0], [3.0]], [2.0, 4.0, 6.0]))
        Task('data', 3 × 1 → 1)
    """
    if isinstance(data, Learnable) and not isinstance(data, type):
        return data
    if isinstance(data, tuple | list) and len(data) == 2:
        return Task(*data, name="data")
    if is_bunch(data):
        parts = BunchParts.of(data)
        return assembled(
            parts.inputs,
            parts.targets,
            name=parts.name,
            source=parts.name,
            origin="were given",
            text=False,
            image_shape=parts.image_shape,
            centre=False,
        )
    kind = type(data).__name__
    remedy = "give a Task, a pair (inputs, targets) of arrays, or a scikit-learn data set"
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        remedy = "read the file with read_table(path, target=…)"
    elif isinstance(getattr(data, "tensors", None), tuple):
        remedy = "give the pair data.tensors"
    elif hasattr(data, "columns") or isinstance(data, dict):
        remedy = "specify the target columns with read_table(frame, target=…)"
    raise InputError(f"the task has type {kind}", argument="task", value=kind, remedy=remedy)
