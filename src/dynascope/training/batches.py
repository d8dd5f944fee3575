"""The batches that steps draw, and the number of steps and epochs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dynascope.arguments import calling, given, require, require_choice, require_count, require_function
from dynascope.errors import InputError
from dynascope.flows.save_times import recorded_steps
from dynascope.tasks.labelled import Labelled
from dynascope.tasks.stream import Stream
from dynascope.tasks.task import Task

__all__ = ["ALL_SAMPLES", "Batch", "Batches", "Steps", "chosen_batches", "chosen_steps"]

ALL_SAMPLES = (Task, Labelled)  # tasks that are a number of samples

_FORM = "give a JAX function of a random key and inputs, with new inputs of the same shape and type"
_AUGMENTED = 1  # follows the step in the keys of augmentation
_MOST = 2**31 - 2  # steps are counted in 32 bits, and the largest such number is never reached


class Batch(NamedTuple):
    """Inputs and what belongs to them.

    Attributes:
        inputs: x, shape (n, …).
        targets: y, shape (n, c), or labels, shape (n,).
    """

    inputs: Any
    targets: Any


@dataclasses.dataclass(frozen=True)
class Batches:
    """How batches are drawn.

    The samples of a step follow from the seed and the number of the step alone, and, where members of an ensemble see
    their own, from the number of the member.

    Attributes:
        size: Samples in a step; None for all of them.
        samples: Number of samples of the task; zero if it has none.
        replacement: Whether each sample of a batch is drawn from all, whatever was drawn before; if not, all samples
            are shuffled for each epoch, and what does not fill a batch at its end is left out.
        independent: Whether every member draws its own.
        stream: The task, if it draws fresh samples.
        augmentation: A function of a key and inputs with new inputs of the same shape, or None.
        parts: Number of micro-batches in a batch.
    """

    size: int | None = None
    samples: int = 0
    replacement: bool = False
    independent: bool = False
    stream: Stream | None = None
    augmentation: Callable[[Any, Any], Any] | None = None
    parts: int = 1

    @property
    def per_epoch(self) -> int | None:
        """Steps of an epoch; None where there are none."""
        if self.samples == 0 or self.replacement:
            return None
        return 1 if self.size is None else self.samples // self.size

    def key(self, seed: Any, member: Any) -> Any:
        """The key of all batches of a member."""
        key = jax.random.key(seed)
        return jax.random.fold_in(key, member) if self.independent else key

    def no_order(self, step: Any) -> Any:
        """The placeholder for the order of the samples before the first `draw`."""
        shuffled = self.size is not None and self.stream is None and not self.replacement
        # Of no epoch, so that it is drawn where it is needed, and compiled once.
        return (-jnp.ones_like(step), jnp.zeros(self.samples, int)) if shuffled else ()

    def draw(self, key: Any, step: Any, order: Any, data: Batch | None, dtype: Any) -> tuple[Batch | None, Any]:
        """The samples of a step, None for a task without samples, and the order of the epoch with its number."""
        batch, order = self._drawn(key, step, order, data, dtype)
        if self.augmentation is not None and batch is not None:
            own = jax.random.fold_in(jax.random.fold_in(key, step), _AUGMENTED)
            with calling("augmentation", type(self.augmentation).__name__, _FORM):
                inputs = jnp.asarray(self.augmentation(own, batch.inputs))
            before = batch.inputs.shape, batch.inputs.dtype
            require(
                (inputs.shape, inputs.dtype) == before,
                f"augmentation makes inputs of shape {inputs.shape} and type {inputs.dtype} of {before}",
                argument="augmentation",
                value=(inputs.shape, str(inputs.dtype)),
                remedy=_FORM,
            )
            batch = batch._replace(inputs=inputs)
        return batch, order

    def fresh(self, key: Any, size: int, dtype: Any) -> Batch:
        """New samples of a stream."""
        assert self.stream is not None
        return Batch(*self.stream.sample(key, size, dtype=dtype)[:2])

    def _drawn(self, key: Any, step: Any, order: Any, data: Batch | None, dtype: Any) -> tuple[Batch | None, Any]:
        if self.size is None or (data is None and self.stream is None):
            return data, order
        if self.stream is not None:
            return self.fresh(jax.random.fold_in(key, step), self.size, dtype), order
        assert data is not None
        if self.replacement:
            # A draw of a named type is the same in single and in double precision.
            rows = jax.random.randint(jax.random.fold_in(key, step), (self.size,), 0, self.samples, jnp.int32)
        else:
            epoch, place = jnp.divmod(step, self.samples // self.size)
            drawn, rows = order
            # The step is that of all members, so that this remains a branch when they are batched.
            rows = jax.lax.cond(
                epoch == drawn,
                lambda: rows,
                lambda: jax.random.permutation(jax.random.fold_in(key, epoch), self.samples),
            )
            order = epoch, rows
            rows = jax.lax.dynamic_slice_in_dim(rows, place * self.size, self.size)
        return Batch(data.inputs[rows], data.targets[rows]), order


class Steps(NamedTuple):
    """How long to train and when to record.

    Attributes:
        count: Number of steps.
        recorded: Steps to record, increasing.
        epochs: After how many epochs these are, if they are whole, or None.
    """

    count: int
    recorded: np.ndarray
    epochs: np.ndarray | None


def chosen_batches(
    task: Any,
    batch_size: int | None,
    micro_batch_size: int | None,
    batches: Any,
    *,
    replacement: bool,
    augmentation: Callable[[Any, Any], Any] | None,
) -> Batches:
    """How batches of the first task are drawn, checked."""
    require_choice("batches", batches, ("shared", "independent"))
    if augmentation is not None:
        require_function("augmentation", augmentation)
    require_choice("replacement", replacement, (True, False))
    samples = task.samples if isinstance(task, ALL_SAMPLES) else 0
    stream = task if isinstance(task, Stream) else None
    if stream is not None:
        _require_hashable(stream)
    size = _checked_size(batch_size, samples, stream, replacement)
    for name, value, possible, remedy in (
        ("replacement", replacement, size is not None and stream is None, "give a batch_size and a task of samples"),
        ("augmentation", augmentation, samples > 0 or stream is not None, "give a task of samples"),
    ):
        require(possible or not value, f"{name} is {value}", argument=name, value=str(value), remedy=remedy)
    parts = _parts(micro_batch_size, size if size is not None else samples or None)
    return Batches(size, samples, bool(replacement), batches == "independent", stream, augmentation, parts)


def chosen_steps(
    steps: int | None, epochs: int | None, record_steps: Any, record_epochs: Any, per_epoch: int | None
) -> Steps:
    """The steps of a run of which an epoch has so many, checked."""
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
        return Steps(count, whole * length, whole)
    if record_steps is None or isinstance(record_steps, int | np.integer):
        number = 100 if record_steps is None else int(record_steps)
        require_count(least=2, record_steps=number)
        return Steps(count, np.unique(np.r_[0, np.geomspace(1, count, number - 1).round().astype(np.int64)]), None)
    return Steps(count, recorded_steps("record_steps", record_steps, count), None)


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
