"""A prediction told in the steps and epochs of a training, besides its own time."""

from __future__ import annotations

import xarray as xr

from dynascope.arguments import require, require_between, require_choice, require_count, require_positive
from dynascope.comparison.loss_convention import LOSSES, LossName, factor_of
from dynascope.record import name_all
from dynascope.record import staircase_names as names

__all__ = ["in_steps", "step_duration"]

_OF_A_CURVE = ("training_step", "training_epoch")


def step_duration(
    predicted: xr.Dataset, *, learning_rate: float, momentum: float = 0.0, loss: LossName = "squared"
) -> float:
    """The gradient-flow time of a step: a η / (1 − β) for a loss that is a times ours.

    Args:
        predicted: A prediction.
        learning_rate: η.
        momentum: β, as of `own_curve`.
        loss: How the loss is defined, as of `own_curve`.

    Raises:
        InputError: The rate is not positive, the momentum not at least 0 and below 1, the loss has no such name, or the
            prediction does not say the number of outputs, or of samples, on which it depends.
    """
    require_positive(learning_rate=learning_rate)
    require_between(0.0, 1.0, open_above=True, momentum=momentum)
    require_choice("loss", loss, LOSSES)
    return learning_rate / (1 - momentum) * factor_of(loss, predicted.attrs)


def in_steps(
    predicted: xr.Dataset,
    *,
    learning_rate: float,
    momentum: float = 0.0,
    loss: LossName = "squared",
    batch_size: int | None = None,
) -> xr.Dataset:
    """The prediction with the step at which each jump comes, and the epoch; of a loss curve those of each time.

    Args:
        predicted: The record of a staircase, or of a loss over time.
        learning_rate: η of gradient descent.
        momentum: Its β, as of `own_curve`.
        loss: How the loss that it descends is defined, as of `own_curve`.
        batch_size: Samples in a step; without it there are no epochs.

    Returns:
        The record with `jump_step` and, with a batch size, `jump_epoch` (of a curve `training_step` and
        `training_epoch`); its attribute `steps` says of which steps.

    Raises:
        InputError: As of `step_duration`, or the batch is not between one and all samples.

    Example:
        >>> from dynascope.record import make_record
        >>> theory = make_record(
        ...     {"jump_time": (["jump"], [3.0]), "loss_before": (["jump"], [1.0]), "loss_after": (["jump"], [0.2])},
        ...     {"jump": [1]},
        ...     attributes={"samples": 60},
        ... )
        >>> told = in_steps(theory, learning_rate=0.05, batch_size=20)
        >>> told["jump_step"].item(), told["jump_epoch"].item()
        (60.0, 20.0)
    """
    jumps = names.JUMP_TIME in predicted
    times = predicted[names.JUMP_TIME if jumps else "time"]
    in_step, in_epoch = (names.JUMP_STEP, names.JUMP_EPOCH) if jumps else _OF_A_CURVE
    steps = times / step_duration(predicted, learning_rate=learning_rate, momentum=momentum, loss=loss)
    with_momentum = f" and momentum {momentum:g}" if momentum else ""
    told = f"of learning rate {learning_rate:g}{with_momentum} on loss = {LOSSES[loss].formula}"
    columns = {in_step: (steps.dims, steps.to_numpy())}
    if batch_size is not None:
        require(
            "samples" in predicted.attrs,
            "what is learned is no set of samples, so that there are no epochs",
            argument="batch_size",
            value=batch_size,
            remedy="leave it out",
        )
        samples = int(predicted.attrs["samples"])
        require_count(most=samples, batch_size=batch_size)
        columns[in_epoch] = (steps.dims, steps.to_numpy() * batch_size / samples)
        told += f", each with {batch_size} of {samples} samples"
    return name_all(predicted.drop_vars([*columns], errors="ignore").assign(columns)).assign_attrs(steps=told)
