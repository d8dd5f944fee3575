"""What descent is asked for, in the form that programs are compiled for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from dynascope.arguments import require, require_choice, require_function
from dynascope.flows.ensemble import Ensemble
from dynascope.flows.objective import check_statistics
from dynascope.protocols import Learnable
from dynascope.tasks.labelled import Labelled
from dynascope.tasks.task import Task
from dynascope.training.batches import Batch
from dynascope.training.losses import Loss, check_targets
from dynascope.training.problem import Member, Problem, Settings
from dynascope.training.sampling import ALL_SAMPLES, Sampling
from dynascope.training.statistics import StepStatistic, sampled_steps

__all__ = ["gathered_members", "posed"]


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
        not several or (len(tasks) == networks and all(isinstance(each, ALL_SAMPLES) for each in tasks)),
        f"there are {len(tasks)} tasks and {networks} networks",
        argument="task",
        value=len(tasks),
        remedy="give one task, or a list with one task of samples for each of a list of networks",
    )
    require(
        isinstance(tasks[0], Learnable) and not isinstance(tasks[0], type),
        f"the task is {type(tasks[0]).__name__}",
        argument="task",
        value=type(tasks[0]).__name__,
        remedy="give a Task, Labelled samples (images.scaled().labelled() of images), a Stream or an Expectation",
    )
    has_samples = isinstance(tasks[0], ALL_SAMPLES)
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
    for name, batch in (("task", data), ("test", held_out)):
        if batch is not None and (loss.classifies or batch.targets.dtype.kind in "iu"):
            outputs = _output_shape(ensemble, batch.inputs[0] if several else batch.inputs)
            if outputs:
                check_targets(loss, batch.targets, outputs, name)
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
    for name, function, _ in of_networks:
        require_function("statistics", function, repr(name))
    with_data = [(name, function, _takes_data(function)) for name, function, _ in of_networks]
    for name, _, of_data in with_data:
        require(
            not of_data or data is not None or others is not None,
            f"the statistic {name!r} takes data and the task has no samples",
            argument="reference",
            remedy="give samples as reference",
        )
    of_steps = _checked_step_statistics(step_statistics, {name for name, *_ in of_networks}, steps)
    powers = [_power(each, loss) for each in tasks]
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
    )
    average = None if has_samples or sampling.batches.stream is not None else tasks[0]
    power = np.asarray(powers if several else powers[0])
    parts = data, held_out, others, average, optimizer, schedule, of_steps, power.astype(dtype)
    problem = Problem(ensemble.objective.frame, *parts)
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
        all(isinstance(one, ALL_SAMPLES) for one in each) and len(each) == (tasks if several else 1),
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


def _power(task: Any, loss: Loss) -> float:
    """Twice the loss of the zero function, or about that; zero where it is not known."""
    if loss.classifies:
        return 2.0
    if loss.kind != "squared" or not isinstance(task, ALL_SAMPLES):
        return 0.0
    return task.target_power if isinstance(task, Task) else 1.0


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
    require(
        statistics is None or isinstance(statistics, Mapping),
        f"step_statistics is {statistics!r}",
        argument="step_statistics",
        value=str(statistics),
        remedy="give a mapping from names to Total, Largest, Latest, Sampled or Recursion",
    )
    found = dict(statistics or {})
    for name, each in found.items():
        require(
            isinstance(name, str) and isinstance(each, StepStatistic) and name not in taken,
            f"the step statistic {name!r} is {'one of the statistics too' if name in taken else type(each).__name__}",
            argument="step_statistics",
            value=name,
            remedy="give Total, Largest, Latest, Sampled or Recursion under a name of its own",
        )
    check_statistics({name: (_nothing, each.dimensions) for name, each in found.items()})
    for name, each in found.items():
        for field in ("function", "start", "following"):
            if hasattr(each, field):
                require_function("step_statistics", getattr(each, field), repr(name))
    sampled_steps(list(found.values()), steps)
    return tuple(found.items())


def _nothing(_: Any) -> None:
    """Stands for a function of a network where names and dimensions are checked."""
