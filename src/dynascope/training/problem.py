"""What is trained: what all members share, what belongs to each, and what a step changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx

from dynascope.training.batches import Batch, Batches
from dynascope.training.losses import Loss
from dynascope.training.statistics import StepStatistic

__all__ = ["Member", "Problem", "Settings", "State"]


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the program is compiled for, besides the shapes.

    Attributes:
        loss: The loss.
        batches: How batches are drawn.
        parts: Number of micro-batches in a batch.
        layerwise: Whether rates are factors on the updates of an optimiser at rate one.
        clocked: Whether rates change on the way, and time has to be summed up.
        counts_right: Whether accuracies are recorded.
        half: Whether outputs are computed in bfloat16.
        several: Whether every network has its own data.
        statistics: Of networks: name, function, whether it takes the reference batch too.
    """

    loss: Loss
    batches: Batches
    parts: int = 1
    layerwise: bool = False
    clocked: bool = False
    counts_right: bool = False
    half: bool = False
    several: bool = False
    statistics: tuple[tuple[str, Callable[..., Any], bool], ...] = ()


class Problem(eqx.Module):
    """What all members share.

    Attributes:
        frame: The network without its weights.
        data: Training samples, with an axis over the tasks in front if there are several; None without samples.
        test: Test samples, likewise.
        reference: The samples that statistics are given; None for the training samples.
        average: A loss in closed form, instead of samples.
        optimizer: A transformation, or a function from a rate to one.
        schedule: The learning rate as a function of the number of updates, or None.
        step_statistics: Statistics of steps by name, of which numbers that are arrays share a program.
        target_power: Twice the loss of the zero function, or about that, which is E‖y‖² of the squared loss; zero where
            it is not known. Shape () or (tasks,).
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


class Member(NamedTuple):
    """What belongs to a member and stays.

    Attributes:
        weights: Initial weights and running statistics.
        rates: Learning rate, or one for each weight array.
        number: Its number in the ensemble.
        place: Number of its network, and of its task if there are several.
    """

    weights: Any
    rates: Any
    number: Any
    place: Any


class State(NamedTuple):
    """What a step changes.

    Attributes:
        weights: What is trained.
        carried: Running statistics.
        optimizer: State of the optimiser.
        clock: Time, what its sum rounded off, and the last rate.
        accumulated: States of the step statistics.
        limit: The loss beyond which the run has diverged.
        diverged: Step at which it did, −1 as long as it has not; the weights stay as they were.
        diverged_loss: The loss there.
    """

    weights: Any
    carried: Any
    optimizer: Any
    clock: Any
    accumulated: Any
    limit: Any
    diverged: Any
    diverged_loss: Any
