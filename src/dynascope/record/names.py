"""What the variables of records are called in words, and in which units they are.

Every variable and coordinate of a record has the attributes `long_name` and `units`, which xarray writes on the axes of
its own figures, and which the figures and pages of this package read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import xarray as xr

from dynascope.arguments import require
from dynascope.record.dimensions import DIMENSIONS
from dynascope.record.quantities import QUANTITIES, UNITS

__all__ = ["describe", "label", "name_all"]

NONE = "1"  # the unit of a pure number
TIME = "gradient-flow time"
STEPS = "optimiser steps"

# What a name says by how it ends or begins, after the names that have words of their own.
_ENDS = {
    "_residual": "{}, observed less predicted",
    "_standard_error": "standard error of {}",
    "_exponent_error": "standard error of the exponent of {}",
    "_error": "error of {}",
    "_low": "{}, low end of its interval",
    "_high": "{}, high end of its interval",
    "_spread": "{}, spread over seeds",
    "_before": "{}, before",
    "_after": "{}, after",
}
_BEGINNINGS = {
    "observed_": "{}, observed",
    "predicted_": "{}, predicted",
    "digits_": "{}, on digits",
    "full_": "{}, trained with its features",
    "network_": "{} of the network",
    "log_": "logarithm of the {}",
    "final_": "final {}",
    "end_": "{} at the end",
    "mean_": "mean {}",
    "median_": "median {}",
}
_Labelled = TypeVar("_Labelled", xr.Dataset, xr.DataArray)


def describe(name: str, *, steps: bool = False) -> tuple[str, str]:
    """The long name and the units of a variable or a coordinate.

    Args:
        name: As in the record. A name that no table knows is read as words, and is taken for a pure number.
        steps: Whether the clock of its record counts optimiser steps, for quantities that are times on that clock.

    Returns:
        The long name and the units, "1" for a pure number; times say on which clock.

    Example:
        >>> describe("jump_time"), describe("kernel_change")
        (('time of the jump', 'gradient-flow time'), ('relative change of the kernel', '1'))
        >>> describe("sleeping_neurons"), describe("accuracy_residual")[0]
        (('sleeping neurons', '1'), 'training accuracy, observed less predicted')
    """
    units = UNITS.get(name, NONE)
    if units == "clock":
        units = STEPS if steps else TIME
    if name in QUANTITIES:
        return QUANTITIES[name], units
    if name in DIMENSIONS:
        return DIMENSIONS[name], units
    for end, phrase in _ENDS.items():
        if name.endswith(end) and name != end:
            long_name, units = describe(name.removesuffix(end), steps=steps)
            return phrase.format(long_name), units
    for beginning, phrase in _BEGINNINGS.items():
        if name.startswith(beginning) and name != beginning:
            long_name, units = describe(name.removeprefix(beginning), steps=steps)
            return phrase.format(long_name), NONE if beginning == "log_" else units
    return name.replace("_", " "), units


def label(values: xr.DataArray) -> str:
    """What is written beside an axis: the long name, with the units unless it is a pure number or they say it all.

    Args:
        values: A variable or a coordinate; one without a long name is described by its name.

    Example:
        >>> label(xr.DataArray(1.0, name="jump_time")), label(xr.DataArray(1.0, name="loss"))
        ('time of the jump (gradient-flow time)', 'loss')
        >>> label(xr.DataArray(1.0, name="time"))
        'gradient-flow time'
    """
    described = describe(str(values.name), steps="step" in values.dims)
    long_name = str(values.attrs.get("long_name", described[0]))
    units = str(values.attrs.get("units", described[1]))
    if units in ("", NONE) or units in long_name:
        return long_name
    return units if long_name in units else f"{long_name} ({units})"


def name_all(record: _Labelled, names: Mapping[str, tuple[str, str]] | None = None) -> _Labelled:
    """The record with a long name and units for everything that has none.

    Args:
        record: A record, or one variable with its coordinates.
        names: For a variable or a coordinate its own long name and units, in place of what it has.

    Returns:
        A copy, which shares the values.

    Raises:
        InputError: There is no such variable.

    Example:
        >>> record = name_all(xr.Dataset({"loss": ("time", [1.0])}, {"time": [0.0]}), {"loss": ("½ MSE", "mV²")})
        >>> record["loss"].attrs["units"], record["time"].attrs["long_name"]
        ('mV²', 'time')
    """
    record = record.copy(deep=False)
    parts = {
        str(name): record[name] for name in (record.variables if isinstance(record, xr.Dataset) else record.coords)
    }
    for name in names or {}:
        require(
            name in parts,
            f"the record has no {name!r} to give a name to",
            argument="names",
            value=name,
            remedy=f"choose from {', '.join(parts)}",
        )
    steps = "step" in record.dims or "step" in record.coords
    for name, part in parts.items():
        long_name, units = describe(name, steps=steps)
        if name in (names or {}):
            part.attrs |= dict(zip(("long_name", "units"), (names or {})[name], strict=True))
        part.attrs = {"long_name": long_name, "units": units, **part.attrs}
    return record
