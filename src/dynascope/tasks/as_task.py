"""What one may give where a task is wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from dynascope.errors import InputError
from dynascope.protocols import Learnable
from dynascope.tasks.data.sklearn_data import BunchParts, is_bunch
from dynascope.tasks.data.table_task import assembled
from dynascope.tasks.task import Task

__all__ = ["TaskLike", "as_task"]

# Anything else is refused by `as_task`, which says what to give instead.
TaskLike: TypeAlias = Learnable | Sequence[Any] | Mapping[str, Any] | Any


def as_task(data: Any) -> Learnable:
    """The task, or that of a pair (inputs, targets) or of a data set of scikit-learn, whose numbers stay as they are.

    Args:
        data: A task of any kind, a pair of what `Task` takes, or a data set of scikit-learn.

    Raises:
        InputError: It is none of these, or makes no task.

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
            came="were given",
            text=False,
            image_shape=parts.image_shape,
            centre=False,
        )
    kind = type(data).__name__
    remedy = "give a Task, a pair (inputs, targets) of arrays, or a data set of scikit-learn"
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        remedy = "read a file by read_table(path, target=…)"
    elif isinstance(getattr(data, "tensors", None), tuple):
        remedy = "give its tensors, as the pair data.tensors"
    elif hasattr(data, "columns") or isinstance(data, dict):
        remedy = "say which columns are the targets, by read_table(frame, target=…)"
    raise InputError(f"the task is of the type {kind}", argument="task", value=kind, remedy=remedy)
