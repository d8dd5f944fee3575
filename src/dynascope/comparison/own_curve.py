"""A loss curve of one's own training, from arrays, a table or a file: its record, in the units of who trained."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from dynascope.arguments import require, require_array, require_between, require_choice, require_increasing
from dynascope.comparison.curve_source import numbers, rate_of_each_step, read_curve
from dynascope.comparison.loss_convention import LOSSES, LossName
from dynascope.record import describe, make_record

__all__ = ["own_curve"]

_SUM_OF_RATES = "sum of learning rates"


def own_curve(
    losses: Any,
    *,
    learning_rate: Any = None,
    momentum: float = 0.0,
    loss: LossName | None = None,
    steps: Any = None,
) -> xr.Dataset:
    """The record of a loss curve that was trained elsewhere, by gradient descent, plain or with momentum.

    It keeps the units of who trained: `compare` brings the prediction to them, so that figures, tables and pages show
    losses and steps as they were logged.

    Args:
        losses: The loss before each step: an array of NumPy, JAX or PyTorch, or a list, shape (n,); a pandas Series,
            whose index are the steps; a DataFrame or a file of columns with the columns `step` and `loss`, or `time`
            and `loss` (time is the sum of the learning rates so far), or with a single column. Files are read as by
            `tasks.from_file`, and exports of TensorBoard, Weights & Biases and Lightning as they are; where the loss
            has another name, the attribute `warnings` of the record names its column.
        learning_rate: The rate of all steps; or an array with that of each step, from step 0, as a schedule gives
            them. Not for a curve over time, nor where a table has a column `learning_rate` or `lr`.
        momentum: β of `torch.optim.SGD`, at least 0 and below 1. A step of rate η then goes as far as one of
            η / (1 − β), and lags as much behind gradient flow as a plain one (1 + β) times as long as that.
        loss: How the loss is defined: "mse" (mean over samples and outputs, as `torch.nn.MSELoss`), "half_mse" (half
            of it), "squared_norm" (mean over samples of the sum over outputs), "squared" (half of that, the convention
            of this package), or "sum" (over samples and outputs, `torch.nn.MSELoss(reduction="sum")`).
        steps: For an array, the number of steps taken before each loss, shape (n,), if not every step was logged.

    Returns:
        A record of `loss` over `time`, which counts steps where the rate is constant and else adds up learning rates.

    Raises:
        InputError: The curve cannot be read, has fewer than two points, a loss that is negative or not finite, or
            steps that do not increase; no learning rate or no convention is given, or one that does not fit; the
            momentum is not at least 0 and below 1.

    Example:
        >>> curve = own_curve([1.0, 0.9, 0.5, 0.1], learning_rate=0.05, loss="mse")
        >>> curve["time"].to_numpy(), curve["time"].attrs["units"]
        (array([0., 1., 2., 3.]), 'optimiser steps')
        >>> own_curve([1.0, 0.9, 0.5], learning_rate=[0.1, 0.2], loss="mse")["time"].to_numpy().round(3)
        array([0. , 0.1, 0.3])
    """
    require(
        loss is not None,
        "nothing says how the loss is defined",
        argument="loss",
        remedy=f"choose loss='mse', which is torch.nn.MSELoss(), or one of {', '.join(map(repr, LOSSES))}",
    )
    require_choice("loss", loss, LOSSES)
    assert loss is not None
    require_between(0.0, 1.0, open_above=True, momentum=momentum)
    source = read_curve(losses)
    clock, places = source.clock, source.places
    if steps is not None:
        require(
            places is None,
            "the curve has steps of its own, and steps are given besides",
            argument="steps",
            remedy="leave one of them out",
        )
        places = numbers("steps", steps)
    values = _checked_losses(source.losses, clock, places)
    places = _checked_places(places, clock, len(values))
    if learning_rate is None and clock == "step" and source.rates is not None:
        learning_rate = rate_of_each_step(numbers("learning_rate", source.rates), places)
    require(
        clock == "step" or momentum == 0,
        "the curve is over time, which adds up learning rates, and a momentum is given besides",
        argument="momentum",
        value=momentum,
        remedy="leave it out, and add up the rates over 1 − momentum",
    )
    time, rate, largest = _on_clock(places, clock, learning_rate)
    farther = 1 / (1 - momentum)
    if rate is None:
        time, largest = farther * time, farther * largest
    kept = np.append(True, np.diff(time) > 0)  # where the rate is zero, nothing moves
    units = describe("step")[1] if rate is not None else _SUM_OF_RATES
    over = "" if momentum == 0 else f", momentum {momentum:g}" if rate is not None else f" over 1 − {momentum:g}"
    told = (f"steps of learning rate {rate:g}" if rate is not None else _SUM_OF_RATES) + over
    return make_record(
        {"loss": (["time"], values[kept])},
        {"time": time[kept]},
        attributes={
            "flow": "a training of your own",
            "loss_convention": loss,
            **({} if rate is None else {"learning_rate": rate}),
            "time_per_unit": 1.0 if rate is None else farther * rate,
            # In plain steps that lag as much, and until the velocity has built up.
            "largest_step": largest * (1 + momentum) * farther,
            "delay": largest * momentum * farther,
            "convention": f"loss = {LOSSES[loss].formula}; time = {told}",
            **({"warnings": list(source.notes)} if source.notes else {}),
        },
        names={"time": ("step" if rate is not None else "time", units)},
    )


def _checked_losses(losses: Any, clock: str, places: Float[np.ndarray, " m"] | None) -> Float[np.ndarray, " n"]:
    values = numbers("losses", losses)
    require(
        len(values) >= 2,
        f"the curve has {len(values)} point{'' if len(values) == 1 else 's'}",
        argument="losses",
        value=len(values),
        remedy="give at least two",
    )
    finite = np.isfinite(values)
    for wrong, remedy in (
        (~finite, "cut the curve there, or train again with a smaller learning rate"),
        (values < 0, "give a squared loss, and not its logarithm"),
    ):
        first = int(np.argmax(wrong))
        place = first if places is None or first >= len(places) else places[first]
        require(
            not wrong.any(),
            f"the loss at {clock} {place:g} is {values[first]:g}",
            argument="losses",
            value=float(values[first]),
            remedy=remedy,
        )
    require(
        values[0] > 0,
        "the first loss is zero, so nothing is left to learn",
        argument="losses",
        value=0.0,
        remedy="give the curve from its start",
    )
    return values


def _checked_places(places: Float[np.ndarray, " m"] | None, clock: str, length: int) -> Float[np.ndarray, " n"]:
    if places is None:
        return np.arange(float(length))
    require(
        len(places) == length,
        f"there are {length} losses and {len(places)} {clock}s",
        argument="steps",
        value=(length, len(places)),
        remedy="give one for each loss",
    )
    places = require_array("steps", places, (None,))
    require_increasing("steps", places, remedy="sort the curve and drop what was logged twice")
    require(
        places[0] >= 0,
        f"the curve begins at {clock} {places[0]:g}",
        argument="steps",
        value=float(places[0]),
        remedy="count from zero",
    )
    return places


def _on_clock(
    places: Float[np.ndarray, " n"], clock: str, learning_rate: Any
) -> tuple[Float[np.ndarray, " n"], float | None, float]:
    """Places on the clock of the record, the constant rate of its steps, and the largest step on that clock."""
    if clock == "time":
        require(
            learning_rate is None,
            "the curve is over time, which adds up learning rates, and a learning rate is given besides",
            argument="learning_rate",
            remedy="leave it out, or name the column 'step' if it counts steps",
        )
        return places, None, 0.0
    require(
        learning_rate is not None,
        "the curve is over steps, and no learning rate says how far each goes",
        argument="learning_rate",
        remedy="give learning_rate=, one number or that of each step, or a column of that name",
    )
    if bool(np.isscalar(learning_rate)) or getattr(learning_rate, "ndim", None) == 0:
        single = learning_rate.detach().cpu() if hasattr(learning_rate, "detach") else learning_rate
        rate = float(require_array("learning_rate", single, ()))
        require(
            rate > 0,
            f"learning_rate is {rate:g}",
            argument="learning_rate",
            value=rate,
            remedy="choose a positive number",
        )
        return places, rate, 1.0
    rates = require_array("learning_rate", numbers("learning_rate", learning_rate), (None,))
    last = int(places[-1])
    require(
        last <= len(rates) <= last + 1,
        f"there are {len(rates)} learning rates, and the curve goes to step {places[-1]:g}",
        argument="learning_rate",
        value=len(rates),
        remedy="give the rate of every step, from step 0 to the last",
    )
    require(
        np.all(rates >= 0) and rates[:last].sum() > 0,
        f"the least learning rate is {rates.min():g}",
        argument="learning_rate",
        value=float(rates.min()),
        remedy="choose numbers that are not negative, and some above zero",
    )
    require(
        np.all(places == np.round(places)),
        "the steps are not whole numbers, and each has a learning rate of its own",
        argument="steps",
        remedy="count steps, and not epochs",
    )
    return np.append(0.0, np.cumsum(rates))[places.astype(int)], None, float(rates[:last].max())
