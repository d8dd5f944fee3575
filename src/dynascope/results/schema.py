"""Records, the common data format of theories and experiments.

A record is a validated `xarray.Dataset`. Its coordinates and variables have standard names, and its attributes describe
its content and conventions. Any record can be compared, plotted, stored and reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from dynascope import __version__
from dynascope.errors import InputError
from dynascope.results.names import name_all
from dynascope.results.staircase_names import JUMP_TIME, LOSS_AFTER, LOSS_BEFORE
from dynascope.validation import require, require_increasing

__all__ = ["CONVENTION", "make_record", "plain_attributes", "validate_record"]

CONVENTION = "loss = ½ E‖f(x) − y‖² (mean over samples, sum over outputs); time = gradient-flow time at rate 1"

# These losses, and losses without a name, are never negative; other functions may be.
_NAMED_LOSSES = ("squared", "cross_entropy", "exponential", "logistic")
_LOSSES = ("loss", "test_loss")
_NEVER_NEGATIVE = (*_LOSSES, LOSS_BEFORE, LOSS_AFTER, "kernel_distance", JUMP_TIME)


def make_record(
    variables: Mapping[str, tuple[Sequence[str], Any]],
    coordinates: Mapping[str, Any],
    *,
    attributes: Mapping[str, Any] | None = None,
    names: Mapping[str, tuple[str, str]] | None = None,
) -> xr.Dataset:
    """Make and validate a record, in which every variable and coordinate has a long name and units.

    Args:
        variables: The dimension names and values of each variable.
        coordinates: The labels of each dimension.
        attributes: Metadata: text, numbers, and lists and dictionaries of these; `convention` and `version` are added.
        names: Long name and units by name, as for `name_all`.

    Returns:
        The validated record.

    Raises:
        InputError: A length does not match, values are neither numbers nor text, a time axis is not increasing, or an
            attribute is not plain data.

    Example:
        >>> curve = make_record({"loss": (["time"], [1.0, 0.5])}, {"time": [0.0, 1.0]}, attributes={"seed": 0})
        >>> curve.attrs["convention"][:4], curve.sizes["time"]
        ('loss', 2)
        >>> curve["time"].attrs
        {'long_name': 'time', 'units': 'gradient-flow time'}
    """
    attributes = {"convention": CONVENTION, "version": __version__, **(attributes or {})}
    plain = plain_attributes(attributes)
    try:
        record = xr.Dataset(
            {name: (tuple(dimensions), np.asarray(values)) for name, (dimensions, values) in variables.items()},
            coords={name: np.asarray(labels) for name, labels in coordinates.items()},
            attrs=plain,
        )
    except ValueError as error:
        raise InputError(
            f"the parts of the record are inconsistent ({error})",
            argument="variables",
            remedy="give every variable the shape of its coordinates",
        ) from None
    return validate_record(name_all(record, names))


def validate_record(record: xr.Dataset) -> xr.Dataset:
    """Return the record unchanged if it follows the schema.

    Raises:
        InputError: As for `make_record`.

    Example:
        >>> validate_record(xr.Dataset({"loss": (["time"], [1.0, 0.5])}))
        Traceback (most recent call last):
        dynascope.errors.InputError: the dimension 'time' has no labels: give a coordinate of the same name.
    """
    for name in record.dims:
        require(
            name in record.coords,
            f"the dimension {name!r} has no labels",
            argument=str(name),
            remedy="give a coordinate of the same name",
        )
    signed = _LOSSES if record.attrs.get("loss_function", "squared") not in _NAMED_LOSSES else ()
    for name, values in record.variables.items():
        for attribute in ("long_name", "units"):
            text = values.attrs.get(attribute, "")
            require(
                isinstance(text, str),
                f"the {attribute} of {name!r} has type {type(text).__name__}",
                argument=attribute,
                value=text,
                remedy="give text",
            )
        require(
            values.dtype.kind in "fiubU",
            f"{name!r} has values of type {values.dtype}",
            argument=str(name),
            value=str(values.dtype),
            remedy="use real numbers, booleans or text",
        )
        if name in _NEVER_NEGATIVE and name not in signed:
            lowest = np.nanmin(values.to_numpy(), initial=0.0)
            require(
                lowest >= 0,
                f"the minimum of {name!r} is {lowest:.6g}",
                argument=str(name),
                value=float(lowest),
                remedy="give non-negative values",
            )
    if "time" in record.dims:
        require_increasing("time", record["time"].to_numpy(), fewest=0)
    for name in ("convention", "version"):
        require(name in record.attrs, f"the attribute {name!r} is missing", argument=name, remedy="use make_record")
    return record


def plain_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Convert attributes to the form that loading returns: lists instead of tuples, and plain numbers."""
    return {name: _plain(name, value) for name, value in attributes.items()}


def _plain(name: str, value: Any) -> Any:
    """Convert a value to text, numbers, None, or lists and dictionaries of these."""
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(name, each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [_plain(name, each) for each in value]
    raise InputError(
        f"the attribute {name!r} has type {type(value).__name__}",
        argument=name,
        value=type(value).__name__,
        remedy="use text, numbers, or lists and dictionaries of these",
    )
