"""Read a logged loss curve from arrays, pandas objects, files or logger exports, and return its record."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from dynascope.comparison.user_curves.units import LOSSES, LossName, Momentum
from dynascope.results import describe, make_record
from dynascope.tasks.data.column_names import is_unnamed, listed
from dynascope.tasks.data.plain_arrays import array_or_frame
from dynascope.tasks.data.table_files import read_frame
from dynascope.validation import require, require_array, require_increasing, require_kind, require_memory
from dynascope.validation.bounded_scalars import PositiveFloat

__all__ = ["CHOOSE_A_LOSS", "LoggedCurve", "numbers", "rate_of_each_step", "read_curve", "user_curve"]

_A_LOSS = f"loss='mse', which is torch.nn.MSELoss(), or one of {', '.join(map(repr, LOSSES))}"
CHOOSE_A_LOSS = f"choose {_A_LOSS}"

_STEPS = ("step", "_step", "global_step", "trainer/global_step", "train/global_step", "iteration")
_TIME = "time"
_RATES = ("learning_rate", "lr")
_RATE_OR_RANGE = re.compile(r"learning_rate|lr(-.*)?|.*__(min|max)")  # W&B also writes minimum and maximum
_OTHER_CLOCK = re.compile(r"epoch|wall.?time|relative time.*|_?timestamp|_?runtime|.* - _step(__min|__max)?")
_LOSS = re.compile(r"loss|mse")
_HELD_OUT = re.compile(r"(?<![a-z])(val|valid|validation|test|eval|dev|held.?out)(?![a-z])")
_SUM_OF_RATES = "sum of learning rates"


def user_curve(
    losses: Any,
    *,
    learning_rate: Any = None,
    momentum: Momentum = 0.0,
    loss: Annotated[LossName | None, _A_LOSS] = None,
    steps: Any = None,
) -> xr.Dataset:
    """Return the record of a loss curve that you logged while training by gradient descent, with or without momentum.

    The record keeps the logged losses and steps; `compare` converts the prediction to their units. Weight decay,
    Nesterov momentum, gradient clipping and adaptive optimisers such as Adam are not modelled.

    Args:
        losses: The loss before each step: a list or a NumPy, JAX or PyTorch array, shape (n,); a pandas Series whose
            index contains the steps; a DataFrame; or a file that `read_table` accepts. Tables have the columns `step`
            and `loss`, the columns `time` and `loss` (time is the sum of the learning rates so far), or one column.
            Exports of TensorBoard, Weights & Biases and Lightning can be read without changes. If the loss column has
            another name, the attribute `warnings` of the record states the name.
        learning_rate: The learning rate of all steps, or an array with the rate of each step from step 0. Omit it for a
            curve over time, or if the table has a column `learning_rate` or `lr`.
        momentum: β of `torch.optim.SGD`, at least 0 and below 1. A step of learning rate η then covers the time η /
            (1 − β). To first order, such a step lags behind gradient flow as much as a step of learning rate (1 + β) η
            / (1 − β)² without momentum.
        loss: How the loss is defined: "mse" (mean over samples and outputs, as `torch.nn.MSELoss`), "half_mse" (half
            of it), "squared_norm" (mean over samples of the sum over outputs), "squared" (half of that, the convention
            of this package), or "sum" (over samples and outputs, `torch.nn.MSELoss(reduction="sum")`).
        steps: If `losses` is an array and not every step was logged, the number of training steps before each loss,
            shape (n,).

    Returns:
        A record of `loss` over `time`. Time counts steps if the learning rate is constant, and otherwise is the sum of
        the learning rates.

    Raises:
        InputError: The curve cannot be read, has fewer than two points, contains a loss that is negative or not finite,
            or has steps that do not increase; or the learning rate, the loss definition or the momentum is missing or
            invalid.

    Example:
        >>> curve = user_curve([1.0, 0.9, 0.5, 0.1], learning_rate=0.05, loss="mse")
        >>> curve["time"].to_numpy(), curve["time"].attrs["units"]
        (array([0., 1., 2., 3.]), 'optimiser steps')
        >>> user_curve([1.0, 0.9, 0.5], learning_rate=[0.1, 0.2], loss="mse")["time"].to_numpy().round(3)
        array([0. , 0.1, 0.3])
    """
    require(loss is not None, "the definition of the loss is missing", argument="loss", remedy=CHOOSE_A_LOSS)
    assert loss is not None
    logged = read_curve(losses)
    clock, places = logged.clock, logged.places
    if steps is not None:
        problem = "steps is given, but the curve already contains its steps"
        require(places is None, problem, argument="steps", remedy="omit steps")
        places = numbers("steps", steps)
    values = _checked_losses(logged.losses, clock, places)
    places = np.arange(float(len(values))) if places is None else _checked_places(places, clock, len(values))
    if learning_rate is None and clock == "step" and logged.rates is not None:
        learning_rate = rate_of_each_step(numbers("learning_rate", logged.rates), places)
    require(
        clock == "step" or momentum == 0,
        f"momentum is {momentum:g}, but the curve is a function of time, the sum of learning rates",
        argument="momentum",
        value=momentum,
        remedy="omit momentum, and compute the time as the sum of learning rate / (1 − momentum)",
    )
    time, rate, largest = _on_clock(places, clock, learning_rate)
    farther = 1 / (1 - momentum)
    if rate is None:
        time, largest = farther * time, farther * largest
        clock, units, per_unit = "time", _SUM_OF_RATES, {"time_per_unit": 1.0}
        time_formula = units + (f" over 1 − {momentum:g}" if momentum else "")
    else:
        units, per_unit = describe("step")[1], {"learning_rate": rate, "time_per_unit": farther * rate}
        time_formula = f"steps of learning rate {rate:g}" + (f", momentum {momentum:g}" if momentum else "")
    kept = np.append(True, np.diff(time) > 0)  # steps of learning rate zero do not change the weights
    return make_record(
        {"loss": (["time"], values[kept])},
        {"time": time[kept]},
        attributes={
            "flow": "your training run",
            "loss_convention": loss,
            **per_unit,
            # The plain step with the same lag, to first order.
            "largest_step": largest * (1 + momentum) * farther,
            "momentum": momentum,
            "convention": f"loss = {LOSSES[loss].formula}; time = {time_formula}",
            **({"warnings": list(logged.notes)} if logged.notes else {}),
        },
        names={"time": (clock, units)},
    )


def _checked_losses(losses: Any, clock: str, places: Float[np.ndarray, " m"] | None) -> Float[np.ndarray, " n"]:
    values = numbers("losses", losses)
    problem = f"the curve has {len(values)} point{'' if len(values) == 1 else 's'}"
    require(len(values) >= 2, problem, argument="losses", value=len(values), remedy="give at least two points")
    for wrong, remedy in (
        (~np.isfinite(values), "end the curve before this loss, or train again with a smaller learning rate"),
        (values < 0, "give the squared loss, not its logarithm"),
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
    problem = "the first loss is zero, so there is nothing to learn"
    require(values[0] > 0, problem, argument="losses", value=0.0, remedy="give the curve from step 0")
    return values


def _checked_places(places: Float[np.ndarray, " m"], clock: str, length: int) -> Float[np.ndarray, " n"]:
    require(
        len(places) == length,
        f"losses has length {length}, but steps has length {len(places)}",
        argument="steps",
        value=(length, len(places)),
        remedy=f"give one {clock} for each loss",
    )
    places = require_array("steps", places, (None,))
    require_increasing("steps", places, remedy="sort the curve and drop duplicate steps")
    require(
        places[0] >= 0,
        f"the first {clock} is {places[0]:g}",
        argument="steps",
        value=float(places[0]),
        remedy=f"give non-negative {clock}s, counted from zero",
    )
    return places


def _on_clock(
    places: Float[np.ndarray, " n"], clock: str, learning_rate: Any
) -> tuple[Float[np.ndarray, " n"], float | None, float]:
    """Return the times of the record, the learning rate if it is constant, and the largest step."""
    if clock == _TIME:
        require(
            learning_rate is None,
            "learning_rate is given, but the curve is a function of time, the sum of learning rates",
            argument="learning_rate",
            remedy="omit learning_rate, or name the column 'step' if it counts steps",
        )
        return places, None, 0.0
    require(
        learning_rate is not None,
        "the learning rate is missing, but the curve is a function of the step",
        argument="learning_rate",
        remedy="give `learning_rate`, as one number or one number per step, or add a column of this name",
    )
    if bool(np.isscalar(learning_rate)) or getattr(learning_rate, "ndim", None) == 0:
        single = learning_rate.detach().cpu() if hasattr(learning_rate, "detach") else learning_rate
        rate = float(require_array("learning_rate", single, ()))
        require_kind(PositiveFloat, learning_rate=rate)
        return places, rate, 1.0
    rates = require_array("learning_rate", numbers("learning_rate", learning_rate), (None,))
    last = int(places[-1])
    require(
        last <= len(rates) <= last + 1,
        f"there are {len(rates)} learning rates, but the curve ends at step {places[-1]:g}",
        argument="learning_rate",
        value=len(rates),
        remedy="give the rate of every step, from step 0 to the last",
    )
    require(
        np.all(rates >= 0) and rates[:last].sum() > 0,
        f"the smallest learning rate is {rates.min():g}",
        argument="learning_rate",
        value=float(rates.min()),
        remedy="give non-negative numbers, not all of them zero",
    )
    require(
        np.all(places == np.round(places)),
        "the steps are not integers, but there is a learning rate for each step",
        argument="steps",
        remedy="count training steps, not epochs",
    )
    return np.append(0.0, np.cumsum(rates))[places.astype(int)], None, float(rates[:last].max())


class LoggedCurve(NamedTuple):
    """A curve before validation: losses, steps or times (None if every step was logged), and learning rates."""

    losses: Any
    clock: str = "step"  # or "time", the sum of the learning rates so far
    places: Any = None
    rates: Any = None
    notes: tuple[str, ...] = ()  # notes on the chosen columns and rows


def read_curve(source: Any) -> LoggedCurve:
    """Find the losses, their steps or times, and the learning rates in an array, a pandas object or a file."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        problem = "is a directory" if path.is_dir() else "does not exist"
        require(
            path.is_file(), f"{path} {problem}", argument="losses", value=str(path), remedy="give the path of a table"
        )
        table, notes, empty = read_frame(path, argument="losses", header=False)
        return _from_table(table, empty, path.name, notes)
    if isinstance(source, pd.DataFrame):
        source = source.reset_index() if any(source.index.names) else source  # the index may hold the steps
        return _from_table(source, source.isna().to_numpy(), "the table", [])
    if isinstance(source, pd.Series):
        clock = _TIME if str(source.index.name).strip().lower() == _TIME else "step"
        return LoggedCurve(source.to_numpy(), clock, numbers("steps", source.index.to_numpy()))
    return LoggedCurve(source)


def rate_of_each_step(
    rates: Float[np.ndarray, " n"], steps: Float[np.ndarray, " n"]
) -> float | Float[np.ndarray, " step"]:
    """Return the learning rate of each step, constant between logged steps; a single number if it never changes."""
    if np.ptp(rates) == 0:
        return float(rates[0])
    lasts = np.diff(np.append(steps, steps[-1] + 1))
    lasts[0] += steps[0]  # the steps before the first logged one
    require_memory(
        lasts.sum() * rates.itemsize,
        "a learning rate for each step",
        argument="steps",
        value=float(steps[-1]),
        remedy="count steps, not samples, or give one learning rate",
    )
    return np.repeat(rates, lasts.astype(int))


def _from_table(table: pd.DataFrame, empty: np.ndarray, source: str, notes: Sequence[str]) -> LoggedCurve:
    """Read the curve in a table; `empty` marks the empty cells."""
    called = [re.sub(r"^[#\s]+", "", str(name)).strip().lower() for name in table.columns]
    rows = [i for i, name in enumerate(table.columns) if is_unnamed(str(name))]
    steps = sorted((i for i, name in enumerate(called) if name in _STEPS), key=lambda i: _STEPS.index(called[i]))
    clocks = [*steps[:1], *(i for i, name in enumerate(called) if name == _TIME)]
    require(
        bool(clocks) or all(np.array_equal(table.iloc[:, i], np.arange(len(table))) for i in rows),
        f"column {rows[0] + 1 if rows else 0} of {source} has no name and does not count the rows from 0",
        argument="losses",
        value=source,
        remedy="name it 'step' if it counts the steps, or remove it",
    )
    others = {*rows, *steps, *clocks}
    logged = [i for i, name in enumerate(called) if i not in others and not _OTHER_CLOCK.fullmatch(name)]
    values = [i for i in logged if not _RATE_OR_RANGE.fullmatch(called[i])]
    losses = _loss_candidates(called, values)
    alone = not clocks and len(table.columns) - len(rows) == 1
    names = [str(name) for i, name in enumerate(table.columns) if i not in rows]
    problem = "but the columns of the loss and the steps cannot be identified"
    remedy = "name one column 'loss' and one 'step' (or 'time', the sum of learning rates)"
    if len(losses) > 1 and len(clocks) == 1:
        problem = f"and each of {listed(str(table.columns[i]) for i in losses)} may be the loss"
        remedy = "rename the training loss to 'loss', or remove the other columns"
    require(
        len(losses) == 1 and (alone or len(clocks) == 1),
        f"{source} has the columns {listed(names)}, {problem}",
        argument="losses",
        value=names,
        remedy=remedy,
    )
    loss = losses[0]
    # Loggers write training losses, validation losses and rates into different rows with empty cells.
    partly = [i for i in logged if i != loss and empty[:, i].any()]
    kept = ~(empty[:, loss] & (~empty[:, partly]).any(axis=1))
    notes = [*notes]
    if len(values) > 1 or (not alone and len(called) > 2 and called[loss] != "loss"):
        notes.append(f"The loss is read from the column {str(table.columns[loss])!r} of {source}.")
    if not kept.all():
        notes.append(f"Skipped {np.sum(~kept)} of {len(kept)} rows because they contain no loss.")
    rates = next((table.iloc[:, called.index(name)] for name in _RATES if name in called), None)
    return LoggedCurve(
        table.iloc[:, loss].to_numpy()[kept],
        "step" if steps or not clocks else _TIME,
        None if alone else numbers("steps", table.iloc[:, clocks[0]].to_numpy()[kept]),
        None if rates is None else rates.ffill().bfill().to_numpy()[kept],
        tuple(notes),
    )


def _loss_candidates(names: Sequence[str], values: Sequence[int]) -> list[int]:
    """Return the column named loss, or the only column; otherwise the columns of training losses, or all columns."""
    named = [i for i in values if names[i] == "loss"]
    if named or len(values) < 2:
        return named or list(values)
    metrics = {i: names[i].rpartition(" - ")[2] for i in values}  # W&B prepends the name of the run
    losses = [i for i in values if _LOSS.search(metrics[i])]
    return [i for i in losses if not _HELD_OUT.search(metrics[i])] or list(values)


def numbers(name: str, values: Any) -> Float[np.ndarray, " n"]:
    """Convert real numbers, not necessarily finite, to an array of shape (n,)."""
    row = np.asarray(array_or_frame(values, name))
    require(
        row.dtype.kind in "biuf",
        f"{name} contains values that are not numbers",
        argument=name,
        value=type(values).__name__,
        remedy="give an array of real numbers",
    )
    require(
        row.ndim == 1,
        f"{name} has shape {row.shape}",
        argument=name,
        value=row.shape,
        remedy="give an array of shape (n,), or a pandas DataFrame with columns step and loss",
    )
    return row.astype(np.float64)
