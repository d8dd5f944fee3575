"""Sampling of batches, and the number of steps and epochs of a run."""

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

ALL_SAMPLES = (Task, Labelled)  # tasks that consist of a fixed set of samples

_FORM = "give a JAX function of a random key and inputs that returns new inputs of the same shape and type"
_RECORDS = 100  # recorded steps by default
# Folded into the key of a step for its augmentation, and for random parts of the network.
_AUGMENTED, _SAMPLED = 1, 2
_MOST = 2**31 - 2  # the largest int32 is reserved for a step that is never reached


@checked
@dataclasses.dataclass(frozen=True)
class Batches:
    """Selects the samples of each training step.

    `batches=32` is short for `batches=Batches(32)`.

    Attributes:
        size: Batch size; None for all samples. Required for a stream.
        micro_size: Number of samples whose gradient is computed at once, a divisor of the batch size; None for the
            whole batch. The gradient of the batch is the mean over its micro-batches. Micro-batches require less
            memory, and they are faster if a micro-batch fits into the cache of a core. With micro-batches, batch
            normalisation uses the statistics of each micro-batch.
        independent: Whether each ensemble member draws its own batches; by default, all members use the same batches.
        replacement: Whether samples are drawn with replacement. Without replacement, the data are shuffled in every
            epoch, and an incomplete batch at the end of an epoch is dropped.
        augmentation: A JAX function of a random key and the inputs of a batch that returns new inputs of the same shape
            and type, such as `tasks.CropAndFlip()`.

    Raises:
        InputError: If an attribute has the wrong type or is out of range.

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
        """Return `batches`, or `Batches(batches)` for a batch size or None."""
        return batches if isinstance(batches, Batches) else cls(batches)


class Batch(NamedTuple):
    """Inputs and targets of a batch.

    Attributes:
        inputs: x, shape (n, …).
        targets: y, shape (n, c), or class labels, shape (n,).
    """

    inputs: Any
    targets: Any


@dataclasses.dataclass(frozen=True)
class Sampler:
    """Draws the batches of a task.

    The samples of a step depend only on the seed and the index of the step. If members draw independent batches, the
    samples also depend on the index of the member.

    Attributes:
        size: Batch size; None for all samples.
        samples: Number of samples of the task; zero for streams and expectations.
        replacement: Whether samples are drawn with replacement. Without replacement, the samples are shuffled in every
            epoch, and an incomplete batch at the end of an epoch is dropped.
        independent: Whether members draw independent batches.
        stream: The task, if it is a stream; otherwise None.
        augmentation: A function of a random key and inputs that returns new inputs of the same shape, or None.
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
        """Number of steps in an epoch; None if the task has no epochs."""
        if self.samples == 0 or self.replacement:
            return None
        return 1 if self.size is None else self.samples // self.size

    def key(self, seed: Any, member: Any) -> Any:
        """Return the random key from which a member draws all its batches."""
        key = jax.random.key(seed)
        return jax.random.fold_in(key, member) if self.independent else key

    def network_key(self, key: Any, step: Any) -> Any:
        """Return the random key of the network in a step, which all micro-batches of the step share."""
        return jax.random.fold_in(jax.random.fold_in(key, step), _SAMPLED)

    def no_order(self, step: Any) -> Any:
        """Return a placeholder for the order of the samples before the first `draw`."""
        shuffled = self.size is not None and self.stream is None and not self.replacement
        # Epoch −1 makes the first draw shuffle the samples, so that this code is compiled only once.
        return (-jnp.ones_like(step), jnp.zeros(self.samples, int)) if shuffled else ()

    def draw(self, key: Any, step: Any, order: Any, data: Batch | None, dtype: Any) -> tuple[Batch | None, Any]:
        """Draw the samples of a step.

        Returns:
            The batch, or None for a task without samples; and the index of the epoch with the order of the samples in
            it.
        """
        batch, order = self._draw_samples(key, step, order, data, dtype)
        if self.augmentation is not None and batch is not None:
            own_key = jax.random.fold_in(jax.random.fold_in(key, step), _AUGMENTED)
            with calling("augmentation", type(self.augmentation).__name__, _FORM):
                inputs = jnp.asarray(self.augmentation(own_key, batch.inputs))
            shape, kind = batch.inputs.shape, batch.inputs.dtype
            require(
                (inputs.shape, inputs.dtype) == (shape, kind),
                f"augmentation changes inputs of shape {shape} and type {kind} to shape {inputs.shape} and type "
                f"{inputs.dtype}",
                argument="augmentation",
                value=(inputs.shape, str(inputs.dtype)),
                remedy=_FORM,
            )
            batch = batch._replace(inputs=inputs)
        return batch, order

    def fresh(self, key: Any, size: int, dtype: Any) -> Batch:
        """Draw new samples from the stream."""
        assert self.stream is not None
        return Batch(*self.stream.sample(key, size, dtype=dtype)[:2])

    def _draw_samples(
        self, key: Any, step: Any, order: Any, data: Batch | None, dtype: Any
    ) -> tuple[Batch | None, Any]:
        if self.size is None or (data is None and self.stream is None):
            return data, order
        if self.stream is not None:
            return self.fresh(jax.random.fold_in(key, step), self.size, dtype), order
        assert data is not None
        if self.replacement:
            # With an explicit type, draws are the same in single and double precision.
            rows = jax.random.randint(jax.random.fold_in(key, step), (self.size,), 0, self.samples, jnp.int32)
        else:
            epoch, place = jnp.divmod(step, self.samples // self.size)
            shuffled, rows = order
            # All members share the step, so this remains a branch under `vmap`.
            rows = jax.lax.cond(
                epoch == shuffled,
                lambda: rows,
                lambda: jax.random.permutation(jax.random.fold_in(key, epoch), self.samples),
            )
            order = epoch, rows
            rows = jax.lax.dynamic_slice_in_dim(rows, place * self.size, self.size)
        return Batch(data.inputs[rows], data.targets[rows]), order


class Steps(NamedTuple):
    """Length of a run, and its recorded steps.

    Attributes:
        count: Number of steps.
        recorded: Recorded steps, in increasing order.
        epochs: Recorded epochs if the length of the run is given in epochs; otherwise None.
    """

    count: int
    recorded: np.ndarray
    epochs: np.ndarray | None


def sampler(task: Any, batches: Batches) -> Sampler:
    """Validate the batches and return the sampler of a task."""
    samples = task.samples if isinstance(task, ALL_SAMPLES) else 0
    stream = task if isinstance(task, Stream) else None
    if stream is not None:
        _require_hashable(stream)
    size = _checked_size(batches.size, samples, stream, batches.replacement)
    for name, value, possible, why, remedy in (
        (
            "replacement",
            batches.replacement,
            size is not None and stream is None,
            "no batch size is given" if stream is None else "the task is a stream",
            "choose a batch size and a task with samples",
        ),
        (
            "augmentation",
            batches.augmentation,
            samples > 0 or stream is not None,
            "the task is an expectation",
            "choose a task with samples",
        ),
    ):
        problem = f"{name} is {value}, but {why}"
        require(possible or not value, problem, argument=name, value=str(value), remedy=remedy)
    parts = _parts(batches.micro_size, size if size is not None else samples or None)
    return Sampler(
        size, samples, bool(batches.replacement), bool(batches.independent), stream, batches.augmentation, parts
    )


def chosen_steps(steps: int | None, epochs: int | None, save: SaveSteps | None, per_epoch: int | None) -> Steps:
    """Validate the length of a run, and return its recorded steps.

    Args:
        steps: Number of steps, or None.
        epochs: Number of epochs, or None.
        save: Number of recorded steps, or the recorded steps themselves; None for the default.
        per_epoch: Steps per epoch; None if the task has no epochs.
    """
    require(
        epochs is None or per_epoch is not None,
        f"epochs is {epochs}, but streams, batches drawn with replacement and expectations have no epochs",
        argument="epochs",
        remedy="give steps instead",
    )
    last = (steps or 0) + (epochs or 0)
    length = 1 if epochs is None else per_epoch or 1
    require(
        last * length <= _MOST,
        f"the run has {last * length} steps, above the limit of {_MOST}",
        argument="steps" if steps is not None else "epochs",
        value=last * length,
        remedy="choose fewer steps",
    )
    if save is None:
        save = _RECORDS if epochs is None else np.arange(last + 1)
    if isinstance(save, int):
        save = np.unique(np.r_[0, np.geomspace(1, last, save - 1).round().astype(np.int64)])
    recorded = recorded_steps("save", save, last)
    return Steps(last * length, recorded * length, None if epochs is None else recorded)


def _checked_size(size: int | None, samples: int, stream: Stream | None, replacement: bool) -> int | None:
    """Return the batch size; raise `InputError` if it does not suit the task."""
    if stream is not None:
        fits, remedy = size is not None, "choose the number of samples that each step draws from the stream"
    elif samples:
        fits = size is None or replacement or size <= samples
        remedy = f"choose an integer from 1 to {samples}, the number of samples of the task, or draw with replacement"
    else:
        fits, remedy = size is None, "omit batches, because an expectation has no samples"
    require(fits, f"the batch size is {size}", argument="batches", value=size, remedy=remedy)
    return size


def _require_hashable(stream: Stream) -> None:
    try:
        hash(stream)
    except TypeError as error:
        raise InputError(
            f"the stream {type(stream).__name__} is not hashable, so its compiled programs cannot be cached",
            argument="task",
            value=type(stream).__name__,
            remedy="make the stream a frozen dataclass of plain numbers and strings",
        ) from error


def _parts(micro_size: int | None, batch: int | None) -> int:
    if micro_size is None:
        return 1
    require(
        batch is not None and batch % micro_size == 0,
        f"micro_size is {micro_size}",
        argument="micro_size",
        value=micro_size,
        remedy=f"choose a divisor of the batch size {batch}"
        if batch
        else "omit micro_size, because an expectation has no samples",
    )
    return (batch or 0) // micro_size
