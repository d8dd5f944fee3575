"""A prediction in the units of a curve of one's own: the one place where losses and times are converted."""

from __future__ import annotations

from typing import Any

import xarray as xr

from dynascope.comparison.curve_source import numbers, read_curve
from dynascope.comparison.doubts import FIRST
from dynascope.comparison.loss_convention import LOSSES, LossName, factor_of, needed_facts
from dynascope.errors import InputError
from dynascope.record import name_all
from dynascope.record import staircase_names as names
from dynascope.record.names import TIME

__all__ = ["in_units_of", "is_own", "require_convention", "with_clock_of"]

_RATES = (names.GROWTH_RATE, names.UNSTABLE_RATE)


def is_own(observed: xr.Dataset) -> bool:
    """Whether a record is that of a curve of one's own, as `own_curve` makes it."""
    return "loss_convention" in observed.attrs


def require_convention(losses: Any, predicted: xr.Dataset) -> None:
    """Refuse losses of one's own of which nothing says how they are defined, and name the convention that they fit.

    Args:
        losses: As of `own_curve`.
        predicted: A prediction in our convention.

    Raises:
        InputError: Always.
    """
    initial = float(predicted.attrs.get(names.INITIAL_LOSS, 0.0))
    first = float(numbers("losses", read_curve(losses).losses)[:1].sum())
    known: list[LossName] = [name for name, each in LOSSES.items() if needed_facts(each) <= predicted.attrs.keys()]
    fitting: list[LossName] = [
        name for name in known if abs(first - factor_of(name, predicted.attrs) * initial) <= FIRST * first
    ]
    said = " or ".join(f"loss={name!r} ({LOSSES[name].formula})" for name in fitting)
    raise InputError(
        "nothing says how the loss is defined",
        argument="loss",
        remedy=f"the first loss fits {said}"
        if said
        else f"choose loss='mse', which is torch.nn.MSELoss(), or one of {', '.join(map(repr, LOSSES))}",
    )


def in_units_of(predicted: xr.Dataset, observed: xr.Dataset) -> xr.Dataset:
    """The prediction with its losses, times and rates in the units of a curve of one's own.

    A loss that is a times ours descends a times as fast, so that a step of rate η moves our time by a η.

    Args:
        predicted: A prediction in our convention.
        observed: The record of the curve.

    Raises:
        InputError: The prediction does not say the number of outputs, or of samples, on which the convention depends.

    Example:
        >>> from dynascope.comparison.own_curve import own_curve
        >>> from dynascope.record import make_record
        >>> theory = make_record(
        ...     {"jump_time": (["jump"], [3.0]), "loss_before": (["jump"], [1.0]), "loss_after": (["jump"], [0.2])},
        ...     {"jump": [1]},
        ...     attributes={"output_dimension": 1},
        ... )
        >>> converted = in_units_of(theory, own_curve([2.0, 0.4], learning_rate=0.05, loss="mse"))
        >>> converted["jump_time"].item(), converted["loss_after"].item()
        (30.0, 0.4)
    """
    factor = factor_of(observed.attrs["loss_convention"], predicted.attrs)
    unit = factor * observed.attrs["time_per_unit"]  # of the clock of the curve, in gradient-flow time
    converted = {}
    # What a user has changed, as by `assign`, has lost its units.
    predicted = name_all(predicted)
    for name, values in predicted.variables.items():
        if values.attrs.get("units") == TIME or name == names.ACCELERATED_TIME:
            converted[name] = values / unit
        elif name in _RATES:
            converted[name] = values * unit
        elif name == "loss" or str(name).startswith("loss_") or str(name).endswith("_loss"):
            converted[name] = values * factor
        else:
            continue
        converted[name].attrs = values.attrs
    converted = predicted.assign_coords(
        {name: values for name, values in converted.items() if name in predicted.coords}
    ).assign({name: values for name, values in converted.items() if name not in predicted.coords})
    converted.attrs["convention"] = observed.attrs["convention"]
    if names.INITIAL_LOSS in converted.attrs:
        converted.attrs[names.INITIAL_LOSS] *= factor
    return with_clock_of(converted, observed)


def with_clock_of(record: xr.Dataset, observed: xr.Dataset) -> xr.Dataset:
    """The record, whose times are on the clock of a curve already, with the units of that clock."""
    record = record.copy(deep=False)
    units = observed["time"].attrs["units"]
    for name in record.variables:
        if record[name].attrs.get("units") == TIME:
            record[name].attrs = {**record[name].attrs, "units": units}
    return record
