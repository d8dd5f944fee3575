"""Validates the arguments of `descend` and turns them into the static specification of the compiled loop."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from dynascope.errors import InputError
from dynascope.flows.ensemble import Ensemble
from dynascope.flows.objective import check_statistics
from dynascope.protocols import Learnable
from dynascope.tasks.labelled import Labelled
from dynascope.tasks.task import Task
from dynascope.training.batches import ALL_SAMPLES, Batch, Sampler, Steps
from dynascope.training.losses import Loss, check_targets
from dynascope.training.statistics import Sampled, StepStatistic
from dynascope.validation import require, require_function

__all__ = ["Member", "Problem", "Run", "specified"]


class Problem(eqx.Module):
    """Settings and data that all members of a run share.

    A program is compiled for each combination of static fields and of leaves that are not arrays.

    Attributes:
        frame: The network without its weights.
        data: Training samples, with a leading axis over tasks if there are several; None if there are no samples.
        test: Test samples in the same format.
        reference: Samples for statistics; None for the training samples.
        average: A loss in closed form, which replaces samples.
        optimizer: An optax transformation, or a function from a learning rate to a transformation.
        schedule: The learning rate as a function of the number of updates, or None.
        step_statistics: Statistics of steps, by name.
        target_power: About twice the loss of the zero function, E‖y‖² for the squared loss; zero if unknown. Shape ()
            or (tasks,).
        seed: Seed of the batches.
        loss: The loss.
        sampler: Draws the batches.
        statistics: Statistics of networks, as (name, function, names of axes, whether the function takes the reference
            samples).
        layerwise: Whether learning rates multiply the updates of an optimiser at learning rate one.
        clocked: Whether the learning rate changes during the run, in which case the program accumulates the time.
        counts_right: Whether the accuracy is recorded.
        half: Whether outputs are computed in bfloat16.
        several: Whether each network has a separate task.
    """

    frame: Any
    data: Batch | None
    test: Batch | None
    reference: Batch | None
    average: Any
    optimizer: Any
    schedule: Any
    step_statistics: tuple[tuple[str, StepStatistic], ...]
    target_power: Any
    seed: Any
    loss: Loss = eqx.field(static=True)
    sampler: Sampler = eqx.field(static=True)
    statistics: tuple[tuple[str, Callable[..., Any], tuple[str, ...], bool], ...] = eqx.field(static=True)
    layerwise: bool = eqx.field(static=True)
    clocked: bool = eqx.field(static=True)
    counts_right: bool = eqx.field(static=True)
    half: bool = eqx.field(static=True)
    several: bool = eqx.field(static=True)


class Member(NamedTuple):
    """Settings of one member, or of several members with a leading axis over members.

    Attributes:
        weights: Initial weights and running statistics.
        rates: Learning rate, or one for each weight array.
        number: Index of the member in the ensemble.
        place: Index of the member's network, and of its task if there are several tasks.
    """

    weights: Any
    rates: Any
    number: Any
    place: Any


@dataclasses.dataclass(frozen=True)
class Run:
    """Specification of a training run.

    Attributes:
        ensemble: The ensemble of networks.
        problem: Settings and data that all members share.
        members: Settings of the members.
        steps: Number of steps, and the recorded steps.
    """

    ensemble: Ensemble
    problem: Problem
    members: Member
    steps: Steps


def specified(
    ensemble: Ensemble,
    task: Any,
    test: Any,
    reference: Any,
    *,
    loss: Loss,
    sampler: Sampler,
    optimizer: Any,
    learning_rate: Any,
    compute_dtype: Any,
    statistics: Any,
    steps: Steps,
    seed: int,
) -> Run:
    """Validate the parts of a run and return its specification.

    Raises:
        InputError: If the arguments are inconsistent.
    """
    several = isinstance(task, list | tuple)
    tasks = list(task) if several else [task]
    networks = len(ensemble.dimensions.get("seed", [0]))
    require(
        not several or (len(tasks) == networks and all(isinstance(each, ALL_SAMPLES) for each in tasks)),
        f"task has length {len(tasks)}, but the number of networks is {networks}",
        argument="task",
        value=len(tasks),
        remedy="give one task, or a list that contains samples for each network",
    )
    require(
        isinstance(tasks[0], Learnable) and not isinstance(tasks[0], type),
        f"task has type {type(tasks[0]).__name__}",
        argument="task",
        value=type(tasks[0]).__name__,
        remedy="give a Task, Labelled samples (for images, images.scaled().labelled()), a Stream or an Expectation",
    )
    has_samples, dtype = isinstance(tasks[0], ALL_SAMPLES), ensemble.dtype
    require(
        has_samples or sampler.stream is not None or loss == Loss(),
        f"loss is {loss.name}, but the task is an expectation",
        argument="loss",
        value=loss.name,
        remedy="give samples, or use the squared loss, whose expectation has a closed form",
    )
    data = _stacked("task", tasks, several, dtype, len(tasks)) if has_samples else None
    held_out = _stacked("test", test, several, dtype, len(tasks))
    others = _stacked("reference", reference, several, dtype, len(tasks))
    _check_inputs(ensemble, (data, held_out, others))
    for name, batch in (("task", data), ("test", held_out)):
        if batch is not None and (loss.classifies or batch.targets.dtype.kind in "iu"):
            outputs = _output_shape(ensemble, batch.inputs[0] if several else batch.inputs)
            if outputs:
                check_targets(loss, batch.targets, outputs, name)
    require(
        compute_dtype is None or dtype == np.float32,
        f"compute_dtype is bfloat16, but the weights are {dtype}",
        argument="compute_dtype",
        value=str(dtype),
        remedy="give a network with float32 weights",
    )
    of_networks, of_steps = _kinds(statistics)
    of_networks = _checked_statistics(of_networks, has_data=data is not None or others is not None)
    powers = [_power(each, loss) for each in tasks]
    problem = Problem(
        frame=ensemble.objective.frame,
        data=data,
        test=held_out,
        reference=others,
        average=None if has_samples or sampler.stream is not None else tasks[0],
        optimizer=optimizer,
        schedule=learning_rate if callable(learning_rate) else None,
        step_statistics=_checked_step_statistics(of_steps, steps.count),
        target_power=np.asarray(powers if several else powers[0]).astype(dtype),
        seed=np.asarray(seed),
        loss=loss,
        sampler=sampler,
        statistics=of_networks,
        layerwise=isinstance(learning_rate, Mapping),
        clocked=learning_rate is None or callable(learning_rate),
        counts_right=has_samples and (loss.classifies or isinstance(tasks[0], Labelled)),
        half=compute_dtype is not None,
        several=several,
    )
    number = np.int32(0)
    if ensemble.dimensions:
        number = np.arange(np.prod(ensemble.shape), dtype=np.int32)
    members = Member(ensemble.weights, ensemble.rates, number, number // np.int32(np.size(number) // networks))
    return Run(ensemble, problem, members, steps)


def _stacked(name: str, given: Any, several: bool, dtype: np.dtype, tasks: int) -> Batch | None:
    if given is None:
        return None
    each = list(given) if isinstance(given, list | tuple) else [given] * (tasks if several else 1)
    require(
        all(isinstance(one, ALL_SAMPLES) for one in each) and len(each) == (tasks if several else 1),
        f"{name} has type {type(given).__name__}",
        argument=name,
        value=type(given).__name__,
        remedy="give a Task or Labelled samples, or a list with one for each task",
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
        f"{name} contains samples of different shapes ({', '.join(map(str, dict.fromkeys(shapes)))})",
        argument=name,
        value=shapes,
        remedy="give samples of equal shapes",
    )
    return Batch(*(np.stack(values) for values in zip(*found, strict=True)))


def _first_weights(ensemble: Ensemble) -> Any:
    return jax.tree.map(lambda leaf: leaf[0], ensemble.weights) if ensemble.dimensions else ensemble.weights


def _check_inputs(ensemble: Ensemble, batches: Sequence[Batch | None]) -> None:
    """Check inputs whose values the compiled program cannot check, such as tokens, if the network has such a check."""
    check = getattr(ensemble.network(_first_weights(ensemble)), "check_inputs", None)
    for batch in batches:
        if check is not None and batch is not None:
            check(batch.inputs)


def _output_shape(ensemble: Ensemble, inputs: np.ndarray) -> tuple[int, ...]:
    """Return the shape of the outputs; empty if the network cannot be applied, which training reports as an error."""
    one = _first_weights(ensemble)
    with ensemble.precision():
        try:
            return jax.eval_shape(lambda weights: ensemble.network(weights)(inputs[:1]), one).shape
        except (TypeError, ValueError):
            return ()


def _power(task: Any, loss: Loss) -> float:
    if loss.classifies:
        return 2.0
    if loss.kind != "squared" or not isinstance(task, ALL_SAMPLES):
        return 0.0
    return task.target_power if isinstance(task, Task) else 1.0


def _kinds(statistics: Any) -> tuple[Any, dict[str, StepStatistic]]:
    """Separate the statistics of networks from those of steps."""
    if not isinstance(statistics, Mapping):
        return statistics, {}
    of_steps = {name: each for name, each in statistics.items() if isinstance(each, StepStatistic)}
    for name, each in statistics.items():
        require(
            name in of_steps or isinstance(each, tuple | list),
            f"the statistic {name!r} has type {type(each).__name__}",
            argument="statistics",
            value=name,
            remedy="give a pair (function of the network, names of the axes of its value), or Total, Largest, Latest, "
            "Sampled or Recursion",
        )
    return {name: each for name, each in statistics.items() if name not in of_steps}, of_steps


def _checked_statistics(statistics: Any, *, has_data: bool) -> tuple[tuple[str, Any, tuple[str, ...], bool], ...]:
    found = check_statistics(statistics)
    for name, function, _ in found:
        require_function("statistics", function, repr(name))
    with_data = tuple((name, function, axes, _takes_data(function)) for name, function, axes in found)
    for name, _, _, of_data in with_data:
        require(
            not of_data or has_data,
            f"the statistic {name!r} takes data, but the task has no samples",
            argument="reference",
            remedy="pass samples as `reference`",
        )
    return with_data


def _takes_data(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in positional and each.default is inspect.Parameter.empty for each in parameters) == 3


def _checked_step_statistics(found: dict[str, StepStatistic], steps: int) -> tuple[tuple[str, StepStatistic], ...]:
    check_statistics({name: (_nothing, each.dimensions) for name, each in found.items()})
    for name, each in found.items():
        for field in ("function", "start", "following"):
            if hasattr(each, field):
                require_function("statistics", getattr(each, field), repr(name))
    sampled = {tuple(each.steps) for each in found.values() if isinstance(each, Sampled)}
    if len(sampled) > 1 or any(each[-1] >= steps for each in sampled):
        raise InputError(
            f"the Sampled statistics use the steps {' and '.join(f'{each[0]} to {each[-1]}' for each in sampled)}",
            argument="statistics",
            value=[list(each) for each in sampled],
            remedy=f"use the same steps for all Sampled statistics, from 0 to {steps - 1}",
        )
    return tuple(found.items())


def _nothing(_: Any) -> None:
    """Placeholder for the function of a statistic if only its name and dimensions are checked."""
