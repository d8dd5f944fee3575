"""Long names and units of the variables of records.

Every variable and coordinate of a record has the attributes `long_name` and `units`. xarray, and the figures and pages
of this package, use them as axis labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import xarray as xr

from dynascope.results.quantities import NONE, QUANTITIES, STEPS, TIME

__all__ = ["describe", "label", "name_all", "names_of"]

Names = Mapping[str, tuple[str, str]]

# Descriptions by suffix and prefix, for names without an entry of their own.
_ENDS = {
    "_residual": "{}, observed minus predicted",
    "_standard_error": "standard error of {}",
    "_exponent_error": "standard error of the exponent of {}",
    "_error": "error of {}",
    "_low": "{}, lower end of the interval",
    "_high": "{}, upper end of the interval",
    "_spread": "{}, standard deviation over seeds",
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


def describe(name: str, names: Names | None = None, *, steps: bool = False) -> tuple[str, str]:
    """Return the long name and the units of a variable or a coordinate.

    Args:
        name: The name in the record.
        names: Long names and units by name, which take precedence over the table of this package. A name that is in
            neither, even without its prefix or suffix, is split into words and considered dimensionless.
        steps: Whether the record counts time in optimiser steps.

    Returns:
        The long name and the units; "1" for a dimensionless quantity.

    Example:
        >>> describe("jump_time"), describe("kernel_change")
        (('time of the jump', 'gradient-flow time'), ('relative change of the kernel', '1'))
        >>> describe("sleeping_neurons"), describe("accuracy_residual")[0]
        (('sleeping neurons', '1'), 'training accuracy, observed minus predicted')
        >>> describe("final_reach", {"reach": ("reach of the kernel", "m")})
        ('final reach of the kernel', 'm')
    """
    return _described(name, {**QUANTITIES, **(names or {})}, STEPS if steps else TIME)[1:]


def label(values: xr.DataArray) -> str:
    """Return an axis label: the long name, with the units unless they are redundant.

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


def name_all(record: _Labelled, names: Names | None = None) -> _Labelled:
    """Add a long name and units to all variables and coordinates that lack them.

    Args:
        record: A record, or one variable with its coordinates.
        names: Long names and units by name, which take precedence over the record and the table of this package. Names
            that are not in the record are ignored.

    Returns:
        A shallow copy.

    Example:
        >>> record = name_all(xr.Dataset({"loss": ("time", [1.0])}, {"time": [0.0]}), {"loss": ("½ MSE", "mV²")})
        >>> record["loss"].attrs["units"], record["time"].attrs["long_name"]
        ('mV²', 'time')
    """
    record, given = record.copy(deep=False), names or {}
    clock = STEPS if "step" in record.dims or "step" in record.coords else TIME
    for name in record.variables if isinstance(record, xr.Dataset) else record.coords:
        base, long_name, units = _described(str(name), {**QUANTITIES, **given}, clock)
        described = {"long_name": long_name, "units": units}
        attributes = record[name].attrs
        record[name].attrs = {**attributes, **described} if base in given else {**described, **attributes}
    return record


def names_of(*records: xr.Dataset | xr.DataArray) -> dict[str, tuple[str, str]]:
    """Return the long names and units in records, by name; later records take precedence.

    Example:
        >>> record = xr.Dataset({"loss": ((), 1.0, {"long_name": "training loss", "units": "1"})})
        >>> names_of(record)
        {'loss': ('training loss', '1')}
    """
    return {
        str(name): (str(part.attrs["long_name"]), str(part.attrs["units"]))
        for record in records
        for name, part in (record.variables if isinstance(record, xr.Dataset) else record.coords).items()
        if {"long_name", "units"} <= part.attrs.keys()
    }


def _described(name: str, known: Names, clock: str) -> tuple[str, str, str]:
    """Return the known name after removal of affixes, the long name and the units."""
    if name in known:
        long_name, units = known[name]
        return name, long_name, clock if units == "clock" else units
    for affixes, rest_of in ((_ENDS, name.removesuffix), (_BEGINNINGS, name.removeprefix)):
        for affix, phrase in affixes.items():
            if (rest := rest_of(affix)) not in (name, ""):
                base, long_name, units = _described(rest, known, clock)
                return base, phrase.format(long_name), NONE if affix == "log_" else units
    return name, name.replace("_", " "), NONE
