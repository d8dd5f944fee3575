"""The training problem of a network of either framework, with centred outputs and an output scale."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from dynascope.errors import InputError
from dynascope.networks.kinds import is_specification
from dynascope.prediction.case import Case
from dynascope.prediction.initial_weights import with_weights
from dynascope.prediction.lazy_or_rich.read_network import read_network
from dynascope.prediction.lazy_or_rich.trained_kernel import TrainableNetwork
from dynascope.prediction.which_theory import case_of, require_network
from dynascope.tasks.as_task import as_task
from dynascope.tasks.task import Task
from dynascope.validation import calling, require, shown_error

__all__ = ["Problem", "problem_of"]

_INPUTS = 256  # most inputs of the kernel


@dataclasses.dataclass(frozen=True)
class Problem:
    """A network, its data and its training.

    Attributes:
        network: The network as functions of its weights; None if the task has no samples.
        targets: y, shape (n, c), or labels for the cross-entropy.
        offset: f₀ on the samples if outputs are centred; otherwise zero.
        rates: Learning rate of each weight; None for gradient flow.
        degree: Degree of homogeneity of the outputs in all weights; None if unknown.
        centred: Whether outputs are centred.
        notes: Differences between the measured network and the user's.
        case: Makes the case of a theory from targets; None if no theory covers this training.
    """

    network: TrainableNetwork | None
    targets: Any
    offset: Any
    rates: np.ndarray | None
    degree: int | None
    centred: bool
    notes: tuple[str, ...]
    case: Callable[[Any], Case | None] | None

    def targets_at(self, output_scale: float) -> Any:
        """Return targets with which the network trains like α (f − f₀) on y with the loss divided by α²."""
        if self.targets.ndim == 1:
            return self.targets
        return self.offset + self.targets / output_scale

    def case_at(self, output_scale: float) -> Case | None:
        """Return the case of a theory at an output scale; None if no theory covers it."""
        if self.case is None or (self.network is None and output_scale != 1):
            return None
        return self.case(None if self.network is None else self.targets_at(output_scale))


def problem_of(
    task: Any,
    network: Any,
    *,
    scale: float | None,
    learning_rate: float | Sequence[float] | None,
    loss: Literal["squared", "cross_entropy"],
    centred: bool,
    seed: int,
    width: int,
) -> Problem:
    """Read the user's arguments."""
    require_network(network)
    if isinstance(network, str) or is_specification(network):
        task = as_task(task)
    network, scale = with_weights(task, network, scale, seed=seed, width=width)
    read = read_network(network, task, scale=1.0 if scale is None else scale, loss=loss)
    if read is None:  # a task in closed form
        case = _case(task, network, scale, learning_rate)
        return Problem(None, None, None, None, None, centred, (), lambda _: case)
    made = read.trainable
    name, form = type(network).__name__, f"give a network that maps inputs of shape {read.inputs.shape} by itself"
    try:
        with calling("network", name, form):
            outputs = made.outputs(made.start)
    except RuntimeError as error:  # of PyTorch, or of equinox layers that need a key
        message = f"network {name} cannot be applied ({shown_error(error)})"
        raise InputError(message, argument="network", value=name, remedy=form) from error
    require(
        np.isfinite(outputs).all() and outputs.ndim == 2,
        f"the initial outputs have shape {outputs.shape}"
        if outputs.ndim != 2
        else "the initial outputs are not finite",
        argument="network",
        value=outputs.shape,
        remedy="give a network that maps n samples to finite outputs of shape (n, c)",
    )
    targets = _targets(read.targets, outputs.shape, loss)
    require(
        targets.ndim == 1 or bool(targets.any()),
        "all targets are zero, so there is nothing to learn",
        argument="task",
        remedy="give targets that are not all zero",
    )
    rates = None if learning_rate is None else _rates(made, learning_rate)

    def case_for(targets: Any) -> Case | None:
        return _case(Task(read.inputs, targets), read.module, None, learning_rate)

    is_covered = loss == "squared" and read.inputs.ndim == 2 and learning_rate is None
    offset = outputs if centred else 0 * outputs
    return Problem(made, targets, offset, rates, read.degree, centred, read.notes, case_for if is_covered else None)


def _targets(targets: np.ndarray, shape: tuple[int, ...], loss: str) -> np.ndarray:
    """Return targets of the shape of the outputs, or labels for the cross-entropy."""
    n, c = shape
    require(
        len(targets) == n,
        f"there are {len(targets)} targets for {n} samples",
        argument="task",
        value=len(targets),
        remedy="give one target for each sample",
    )
    labels = targets[:, 0] if targets.ndim == 2 and targets.shape[1] == 1 else targets
    integers = labels.ndim == 1 and np.array_equal(labels, np.round(labels)) and 0 <= labels.min() <= labels.max() < c
    if loss == "cross_entropy":
        if labels.ndim == 2 and labels.shape == shape:
            labels, integers = labels.argmax(axis=1), True
        require(
            integers and c > 1,
            f"targets of shape {targets.shape} are not classes of a network with {c} output{'s' * (c != 1)}",
            argument="task",
            value=targets.shape,
            remedy=f"give integers from 0 to {c - 1}" if c > 1 else "give a network with one output for each class",
        )
        return labels.astype(np.int64)
    if labels.ndim == 1 and c > 1 and integers:
        return np.eye(c)[labels.astype(int)]
    targets = targets[:, None] if targets.ndim == 1 else targets
    require(
        targets.shape == shape,
        f"targets have shape {targets.shape}, but the outputs have shape {shape}",
        argument="task",
        value=targets.shape,
        remedy=f"give targets of shape {shape}",
    )
    return targets.astype(np.float64)


def _rates(network: TrainableNetwork, learning_rate: float | Sequence[float]) -> np.ndarray:
    rates = np.atleast_1d(np.asarray(learning_rate, np.float64))
    if len(rates) == 1:
        return np.full(len(network.start), rates[0])
    layers = 0 if network.layers is None else int(network.layers.max()) + 1
    require(
        len(rates) == layers,
        f"learning_rate has length {len(rates)}, but the network has {layers} layers"
        if layers
        else f"learning_rate has length {len(rates)}, but the layers of this network are not known",
        argument="learning_rate",
        value=len(rates),
        remedy="give one number, or one for each layer" if layers else "give one number",
    )
    return rates[network.layers]


def _case(task: Any, network: Any, scale: float | None, learning_rate: Any) -> Case | None:
    try:
        return case_of(task, network, scale=scale, learning_rate=learning_rate)
    except InputError:
        return None  # no theory reads this network
