"""The batches that steps draw, and the number of steps and epochs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Ge
from jaxtyping import Real

from dynascope.errors import InputError
from dynascope.flows.save_times import recorded_steps
from dynascope.tasks.labelled import Labelled
from dynascope.tasks.stream import Stream
from dynascope.tasks.task import Task
from dynascope.validation import calling, checked, require, require_function
from dynascope.validation.bounded_scalars import PositiveInt

__all__ = ["ALL_SAMPLES", "Batch", "Batches", "Sampler", "SaveSteps", "Steps", "chosen_steps", "sampler"]

SaveSteps: TypeAlias = Annotated[int, Ge(2)] | Sequence[int] | Real[np.ndarray, " steps"]

ALL_SAMPLES = (Task, Labelled)  # tasks that are a number of samples

_FORM = "give a JAX function of a random key and inputs, with new inputs of the same shape and type"
_RECORDS = 100  # steps at which to record
_AUGMENTED = 1  # follows the step in the keys of augmentation
_MOST = 2**31 - 2  # steps are counted in 32 bits, and the largest such number is never reached


@checked
@dataclasses.dataclass(frozen=True)
class Batches:
    """How the samples of each step are chosen. The size alone, as in `batches=32`, stands for `Batches(32)`.

    Attributes:
        size: Samples in a step; None for all. A stream needs one.
        micro_size: Samples of which the gradient is computed at a time, a divisor of the batch; None for all. The
            gradient of the batch is the mean of the gradients of its micro-batches, which takes less memory and, where
            they stay in a core's cache, less time. Batch normalisation is that of the micro-batch.
        independent: Whether each member of an ensemble draws its own batches; by default all see the same.
        replacement: Whether each sample of a batch is drawn from all. Otherwise the data are shuffled for each epoch,
            and the samples at its end that do not fill a batch are left out.
        augmentation: A JAX function of a random key and the inputs of a batch, with new inputs of the same shape, such
            as `tasks.CropAndFlip()`.

    Raises:
        InputError: A value of another kind.

    Example:
        >>> Batches(32, independent=True).replacement
        False
        >>> Batches(0)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: size is 0: choose an integer of at least 1.
    """

    size: PositiveInt | None = None
    _: dataclasses.KW_ONLY
    micro_size: PositiveInt | None = None
    independent: bool = False
    replacement: bool = False
    augmentation: Callable[[Any, Any], Any] | None = None

    def __post_init__(self):
        if self.augmentation is not None:
            require_function("augmentation", self.augmentation)

    @classmethod
    def of(cls, batches: PositiveInt | Batches | None) -> Batches:
        """The batches, or those of this size; None for all samples in each step."""
        return batches if isinstance(batches, Batches) else cls(batches)


class Batch(NamedTuple):
    """Inputs and what belongs to them.

    Attributes:
        inputs: x, shape (n, …).
        targets: y, shape (n, c), or labels, shape (n,).
    """

    inputs: Any
    targets: Any


@dataclasses.dataclass(frozen=True)
class Sampler:
    """Draws the batches of a task.

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


def sampler(task: Any, batches: Batches) -> Sampler:
    """The sampler of the first task, checked."""
    samples = task.samples if isinstance(task, ALL_SAMPLES) else 0
    stream = task if isinstance(task, Stream) else None
    if stream is not None:
        _require_hashable(stream)
    size = _checked_size(batches.size, samples, stream, batches.replacement)
    for name, value, possible, remedy in (
        ("replacement", batches.replacement, size is not None and stream is None, "give a size and a task of samples"),
        ("augmentation", batches.augmentation, samples > 0 or stream is not None, "give a task of samples"),
    ):
        require(possible or not value, f"{name} is {value}", argument=name, value=str(value), remedy=remedy)
    parts = _parts(batches.micro_size, size if size is not None else samples or None)
    return Sampler(
        size, samples, bool(batches.replacement), bool(batches.independent), stream, batches.augmentation, parts
    )


def chosen_steps(steps: int | None, epochs: int | None, save: SaveSteps | None, per_epoch: int | None) -> Steps:
    """The steps of a run of which an epoch has so many, and those to record, checked."""
    require(
        epochs is None or per_epoch is not None,
        f"epochs is {epochs}",
        argument="epochs",
        remedy="count steps: fresh samples, batches drawn with replacement, and expectations have no epochs",
    )
    last = (steps or 0) + (epochs or 0)
    length = 1 if epochs is None else per_epoch or 1
    require(
        last * length <= _MOST,
        f"there are {last * length} steps",
        argument="steps" if steps is not None else "epochs",
        value=last * length,
        remedy=f"choose at most {_MOST} steps",
    )
    if save is None:
        save = _RECORDS if epochs is None else np.arange(last + 1)
    if isinstance(save, int):
        save = np.unique(np.r_[0, np.geomspace(1, last, save - 1).round().astype(np.int64)])
    recorded = recorded_steps("save", save, last)
    return Steps(last * length, recorded * length, None if epochs is None else recorded)


def _checked_size(size: int | None, samples: int, stream: Stream | None, replacement: bool) -> int | None:
    """The size, which has to fit the task."""
    if stream is not None:
        fits, remedy = size is not None, "choose how many fresh samples each step of a stream draws"
    elif samples:
        fits = size is None or replacement or size <= samples
        remedy = f"choose a whole number between 1 and the {samples} samples of the task, or draw with replacement"
    else:
        fits, remedy = size is None, "an expectation has no samples"
    require(fits, f"the batch size is {size}", argument="batches", value=size, remedy=remedy)
    return size


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


def _parts(micro_size: int | None, batch: int | None) -> int:
    if micro_size is None:
        return 1
    require(
        batch is not None and batch % micro_size == 0,
        f"micro_size is {micro_size}",
        argument="micro_size",
        value=micro_size,
        remedy=f"choose a divisor of the batch of {batch} samples" if batch else "an expectation has no samples",
    )
    return (batch or 0) // micro_size
