"""What descent is asked for, checked and brought into the form that programs are compiled for."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from dynascope.arguments import require, require_choice, require_count
from dynascope.errors import InputError
from dynascope.flows.ensemble import Ensemble
from dynascope.flows.objective import check_statistics
from dynascope.flows.recorded import recorded_steps
from dynascope.flows.steps.batches import Batch, Batches
from dynascope.flows.steps.losses import Loss, check_targets
from dynascope.flows.steps.step_statistics import StepStatistic, sampled_steps
from dynascope.flows.steps.training import Member, Problem, Settings
from dynascope.tasks.labelled import Labelled
from dynascope.tasks.stream import Stream
from dynascope.tasks.task import Task

__all__ = ["Sampling", "chosen_batches", "chosen_rates", "chosen_steps", "gathered_members", "posed"]

_ALL_SAMPLES = (Task, Labelled)


class Sampling(NamedTuple):
    """How batches are drawn, and in how many parts their gradients are computed."""

    batches: Batches
    parts: int


def chosen_rates(learning_rate: Any, *, has_own: bool) -> tuple[Any, Any, bool]:
    """The rates of the members, the schedule, and whether time has to be summed up on the way.

    Args:
        learning_rate: As `descend` takes it.
        has_own: Whether the optimiser has its own rate.

    Raises:
        InputError: There is none, or one too many.
    """
    layerwise = isinstance(learning_rate, Mapping)
    if has_own:
        require(
            learning_rate is None or layerwise,
            f"learning_rate is {learning_rate} and the optimizer, a transformation, has its own",
            argument="learning_rate",
            value=str(learning_rate),
            remedy="leave it out, or give a function from a rate to a transformation as the optimizer",
        )
    elif learning_rate is None:
        raise InputError(
            "learning_rate is not given",
            argument="learning_rate",
            remedy="give a number, several, one for each layer, or a schedule",
        )
    if learning_rate is None:
        return 1.0, None, True
    return (1.0, learning_rate, True) if callable(learning_rate) else (learning_rate, None, False)


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
    first = task[0] if isinstance(task, list | tuple) and task else task
    samples = first.samples if isinstance(first, _ALL_SAMPLES) else 0
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
    require_count(**({"steps": steps} if epochs is None else {"epochs": epochs}))
    length = per_epoch or 1
    count = operator.index(steps) if steps is not None else operator.index(epochs) * length  # type: ignore[arg-type]
    if epochs is not None and record_steps is None and record_epochs is None:
        record_epochs = np.arange(epochs + 1)
    if record_epochs is not None:
        whole = recorded_steps("record_epochs", record_epochs, count // length)
        return count, whole * length, whole
    if record_steps is None or isinstance(record_steps, int | np.integer):
        number = 100 if record_steps is None else int(record_steps)
        require_count(least=2, record_steps=number)
        return count, np.unique(np.r_[0, np.geomspace(1, count, number - 1).round().astype(np.int64)]), None
    return count, recorded_steps("record_steps", record_steps, count), None


def posed(
    ensemble: Ensemble,
    task: Any,
    test: Any,
    reference: Any,
    *,
    loss: Loss,
    sampling: Sampling,
    optimizer: Any,
    schedule: Any,
    layerwise: bool,
    clocked: bool,
    compute_dtype: Any,
    statistics: Any,
    step_statistics: Mapping[str, StepStatistic] | None,
    steps: int,
) -> tuple[Problem, Settings]:
    """What all members share, and what the program is compiled for.

    Raises:
        InputError: Parts that do not fit together.
    """
    several = isinstance(task, list | tuple)
    tasks = list(task) if several else [task]
    networks = len(ensemble.dimensions["seed"]) if "seed" in ensemble.dimensions else 1
    require(
        not several or (len(tasks) == networks and all(isinstance(each, _ALL_SAMPLES) for each in tasks)),
        f"there are {len(tasks)} tasks and {networks} networks",
        argument="task",
        value=len(tasks),
        remedy="give one task, or a list with one task of samples for each of a list of networks",
    )
    has_samples = isinstance(tasks[0], _ALL_SAMPLES)
    known = has_samples or sampling.batches.stream is not None or loss == Loss()
    require(
        known,
        f"the loss is {loss.name} and the task is an expectation",
        argument="loss",
        value=loss.name,
        remedy="give samples, or leave the squared loss, of which the expectation is known",
    )
    dtype = ensemble.dtype
    data = _stacked("task", tasks, several, dtype, len(tasks)) if has_samples else None
    held_out = _stacked("test", test, several, dtype, len(tasks))
    others = _stacked("reference", reference, several, dtype, len(tasks))
    for batch in (data, held_out):
        if batch is not None and (loss.classifies or batch.targets.dtype.kind in "iu"):
            outputs = _output_shape(ensemble, batch.inputs[0] if several else batch.inputs)
            if outputs:
                check_targets(loss, batch.targets, outputs)
    if compute_dtype is not None:
        require_choice("compute_dtype", compute_dtype, ("bfloat16",))
        require(
            dtype == np.float32,
            f"compute_dtype is bfloat16 and the weights are {dtype}",
            argument="compute_dtype",
            value=str(dtype),
            remedy="give a network with float32 weights",
        )
    of_networks = check_statistics(statistics)
    with_data = [(name, function, _takes_data(function)) for name, function, _ in of_networks]
    for name, _, of_data in with_data:
        require(
            not of_data or data is not None or others is not None,
            f"the statistic {name!r} takes data and the task has no samples",
            argument="reference",
            remedy="give samples as reference",
        )
    of_steps = _checked_step_statistics(step_statistics, {name for name, *_ in of_networks}, steps)
    powers = [each.target_power if isinstance(each, Task) and loss == Loss() else 0.0 for each in tasks]
    settings = Settings(
        loss,
        sampling.batches,
        sampling.parts,
        layerwise=layerwise,
        clocked=clocked,
        counts_right=has_samples and (loss.classifies or isinstance(tasks[0], Labelled)),
        half=compute_dtype is not None,
        several=several,
        statistics=tuple(with_data),
        step_statistics=of_steps,
    )
    average = None if has_samples or sampling.batches.stream is not None else tasks[0]
    power = np.asarray(powers if several else powers[0])
    problem = Problem(
        ensemble.objective.frame, data, held_out, others, average, optimizer, schedule, power.astype(dtype)
    )
    return problem, settings


def gathered_members(ensemble: Ensemble) -> Member:
    """What belongs to each member, with an axis in front if there are several."""
    if not ensemble.dimensions:
        return Member(ensemble.weights, ensemble.rates, np.int32(0), np.int32(0))
    number = np.arange(np.prod(ensemble.shape), dtype=np.int32)
    networks = ensemble.shape[0] if "seed" in ensemble.dimensions else 1
    return Member(ensemble.weights, ensemble.rates, number, number // np.int32(len(number) // networks))


def _stacked(name: str, given: Any, several: bool, dtype: np.dtype, tasks: int) -> Batch | None:
    if given is None:
        return None
    each = list(given) if isinstance(given, list | tuple) else [given] * (tasks if several else 1)
    require(
        all(isinstance(one, _ALL_SAMPLES) for one in each) and len(each) == (tasks if several else 1),
        f"{name} is {type(given).__name__}",
        argument=name,
        value=type(given).__name__,
        remedy="give a Task or Labelled samples, or one for each of several tasks",
    )
    found = [
        Batch(
            one.inputs.astype(dtype, copy=False) if one.inputs.dtype.kind == "f" else one.inputs,
            one.targets.astype(dtype, copy=False) if isinstance(one, Task) else one.labels.astype(np.int32),
        )
        for one in each
    ]
    if not several:
        return found[0]
    shapes = [(batch.inputs.shape, batch.targets.shape) for batch in found]
    require(
        len(set(shapes)) == 1,
        f"{name} has the shapes {', '.join(map(str, dict.fromkeys(shapes)))}",
        argument=name,
        value=shapes,
        remedy="give tasks of equal sizes",
    )
    return Batch(*(np.stack(values) for values in zip(*found, strict=True)))


def _output_shape(ensemble: Ensemble, inputs: np.ndarray) -> tuple[int, ...]:
    """Shape of the outputs for the inputs; empty for a network that cannot be applied, which is told elsewhere."""
    one = jax.tree.map(lambda leaf: leaf[0], ensemble.weights) if ensemble.dimensions else ensemble.weights
    with ensemble.precision():
        try:
            return jax.eval_shape(lambda weights: ensemble.network(weights)(inputs[:1]), one).shape
        except (TypeError, ValueError):
            return ()


def _takes_data(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in positional and each.default is inspect.Parameter.empty for each in parameters) == 3


def _checked_step_statistics(
    statistics: Mapping[str, StepStatistic] | None, taken: set[str], steps: int
) -> tuple[tuple[str, StepStatistic], ...]:
    found = dict(statistics or {})
    for name, each in found.items():
        require(
            isinstance(each, StepStatistic) and name not in taken,
            f"the step statistic {name!r} is {'one of the statistics too' if name in taken else type(each).__name__}",
            argument="step_statistics",
            value=name,
            remedy="give Total, Largest, Latest, Sampled or Recursion under a name of its own",
        )
    check_statistics({name: (_nothing, each.dimensions) for name, each in found.items()})
    sampled_steps(list(found.values()), steps)
    return tuple(found.items())


def _nothing(_: Any) -> None:
    """Stands for a function of a network where names and dimensions are checked."""


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
