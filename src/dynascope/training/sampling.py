"""How batches are drawn and which steps are recorded, of what descent is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dynascope.arguments import given, require, require_choice, require_count, require_function
from dynascope.errors import InputError
from dynascope.flows.recorded import recorded_steps
from dynascope.tasks.labelled import Labelled
from dynascope.tasks.stream import Stream
from dynascope.tasks.task import Task
from dynascope.training.batches import Batches

__all__ = ["ALL_SAMPLES", "Sampling", "chosen_batches", "chosen_steps"]

_MOST = 2**31 - 2  # steps are counted in 32 bits, and the largest such number is never reached
ALL_SAMPLES = (Task, Labelled)  # tasks that are a number of samples


class Sampling(NamedTuple):
    """How batches are drawn, and in how many parts their gradients are computed."""

    batches: Batches
    parts: int


def chosen_batches(
    task: Any,
    batch_size: int | None,
    micro_batch_size: int | None,
    batches: Any,
    *,
    replacement: bool,
    augmentation: Callable[[Any, Any], Any] | None,
) -> Sampling:
    """How batches are drawn.

    Raises:
        InputError: A batch that the task cannot fill, or settings without a batch that they could belong to.
    """
    require_choice("batches", batches, ("shared", "independent"))
    if augmentation is not None:
        require_function("augmentation", augmentation)
    require_choice("replacement", replacement, (True, False))
    first = task[0] if isinstance(task, list | tuple) and task else task
    samples = first.samples if isinstance(first, ALL_SAMPLES) else 0
    stream = first if isinstance(first, Stream) else None
    if stream is not None:
        _require_hashable(stream)
    size = _checked_size(batch_size, samples, stream, replacement)
    for name, value, possible, remedy in (
        ("replacement", replacement, size is not None and stream is None, "give a batch_size and a task of samples"),
        ("augmentation", augmentation, samples > 0 or stream is not None, "give a task of samples"),
    ):
        require(possible or not value, f"{name} is {value}", argument=name, value=str(value), remedy=remedy)
    drawn = Batches(size, samples, bool(replacement), batches == "independent", stream, augmentation)
    return Sampling(drawn, _parts(micro_batch_size, size if size is not None else samples or None))


def chosen_steps(
    steps: int | None,
    epochs: int | None,
    record_steps: Any,
    record_epochs: Any,
    per_epoch: int | None,
) -> tuple[int, np.ndarray, np.ndarray | None]:
    """The number of steps, those to record, and after how many epochs these are, if they are whole.

    Raises:
        InputError: Both steps and epochs, or neither; or epochs of what has none.
    """
    require(
        (steps is None) != (epochs is None),
        f"steps is {steps} and epochs is {epochs}",
        argument="steps",
        value=steps,
        remedy="give one of the two",
    )
    require(
        per_epoch is not None or (epochs is None and record_epochs is None),
        f"epochs is {epochs} and record_epochs is {record_epochs}",
        argument="epochs" if epochs is not None else "record_epochs",
        remedy="count steps: fresh samples, batches drawn with replacement, and expectations have no epochs",
    )
    require(
        record_steps is None or record_epochs is None,
        "record_steps and record_epochs are both given",
        argument="record_epochs",
        remedy="give one of the two",
    )
    require_count(**given(steps=steps, epochs=epochs))
    length = per_epoch or 1
    count = int(steps or 0) + int(epochs or 0) * length
    require(
        count <= _MOST,
        f"there are {count} steps",
        argument="steps" if steps is not None else "epochs",
        value=count,
        remedy=f"choose at most {_MOST} steps",
    )
    if epochs is not None and record_steps is None and record_epochs is None:
        record_epochs = np.arange(count // length + 1)
    if record_epochs is not None:
        whole = recorded_steps("record_epochs", record_epochs, count // length)
        return count, whole * length, whole
    if record_steps is None or isinstance(record_steps, int | np.integer):
        number = 100 if record_steps is None else int(record_steps)
        require_count(least=2, record_steps=number)
        return count, np.unique(np.r_[0, np.geomspace(1, count, number - 1).round().astype(np.int64)]), None
    return count, recorded_steps("record_steps", record_steps, count), None


def _checked_size(batch_size: Any, samples: int, stream: Stream | None, replacement: bool) -> int | None:
    """The size as a plain number, which a compiled program can be found by."""
    whole = isinstance(batch_size, int | np.integer) and not isinstance(batch_size, bool) and batch_size >= 1
    if stream is not None:
        remedy = "choose how many fresh samples each step of a stream draws"
    elif samples:
        whole = batch_size is None or (whole and (replacement or batch_size <= samples))
        remedy = f"choose a whole number between 1 and the {samples} samples of the task, or draw with replacement"
    else:
        whole, remedy = batch_size is None, "an expectation has no samples"
    require(whole, f"batch_size is {batch_size}", argument="batch_size", value=batch_size, remedy=remedy)
    return None if batch_size is None else int(batch_size)


def _require_hashable(stream: Stream) -> None:
    try:
        hash(stream)
    except TypeError as error:
        raise InputError(
            f"the stream {type(stream).__name__} cannot be hashed, so that no compiled program can be found for it",
            argument="task",
            value=type(stream).__name__,
            remedy="make it a frozen dataclass of plain numbers and strings",
        ) from error


def _parts(micro_batch_size: int | None, batch: int | None) -> int:
    if micro_batch_size is None:
        return 1
    whole = isinstance(micro_batch_size, int | np.integer) and micro_batch_size >= 1
    require(
        batch is not None and whole and batch % micro_batch_size == 0,
        f"micro_batch_size is {micro_batch_size}",
        argument="micro_batch_size",
        value=micro_batch_size,
        remedy=f"choose a divisor of the batch of {batch} samples" if batch else "an expectation has no samples",
    )
    return (batch or 0) // int(micro_batch_size)
