"""What a cell of a sweep stores: the numbers and the curves of one run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from dynascope.errors import InputError
from dynascope.results import Comparison, Result

__all__ = ["CLOCKS", "CURVE", "POINTS", "SHARE", "Measurements", "measurements"]

Measurements = dict[str, tuple[tuple[str, ...], Any]]
"""For each name, its dimensions besides those of the sweep, and its number, text or nested list of numbers."""

CURVE, POINTS = "point", 65
SHARE = "error_share"  # the largest error of a comparison in units of its tolerance
CLOCKS = ("time", "accelerated_time", "step", "epoch")
_CLAIM = "hypothesis"  # dimension of claims, which are stored by name
_MOST_VALUES = 4096  # of a variable in one cell
_PREDICTED = "predicted_"


def measurements(found: Any) -> Measurements:
    """Extract numbers and curves from what a function or a study returned.

    A number is stored as `value`, and a mapping of numbers under its names. From a record, every numeric variable of up
    to 4096 values is stored. Along time, steps or epochs, it is interpolated on 65 points that divide the recorded
    times into equal parts, and the times of these points are stored beside it. Other dimensions, such as the jumps of a
    staircase, are kept, with their length as `count_…`. From a comparison, the verdict, the error of each quantity, and
    the value and outcome of each claim are stored as well, and the largest error in units of its tolerance as
    `error_share`. Predicted variables start with `predicted_`.

    Args:
        found: A number, a mapping of numbers, an xarray dataset, a prediction, an observation or a comparison.

    Raises:
        InputError: It contains no numbers.

    Example:
        >>> measurements(0.5)
        {'value': ((), 0.5)}
        >>> record = xr.Dataset({"loss": ("time", [1.0, 0.0])}, {"time": [0.0, 2.0]})
        >>> {name: (dims, len(values)) for name, (dims, values) in measurements(record).items()}
        {'time': (('point',), 65), 'loss': (('point',), 65)}
    """
    if isinstance(found, Result):
        values = _of_result(found)
    elif isinstance(found, xr.Dataset):
        _require_finite(found)
        values = _of_record(found)
    elif isinstance(found, Mapping):
        values = {str(name): ((), _number(each, str(name))) for name, each in found.items()}
    else:
        values = {"value": ((), _number(found, "value"))}
    if not values:
        raise _without_numbers(found)
    return values


def _of_result(result: Result) -> Measurements:
    values: Measurements = {}
    if result.predicted is not None:
        values |= _of_record(result.predicted, _PREDICTED if result.observed is not None else "")
    if result.observed is not None:
        values |= _of_record(result.observed)
    if isinstance(result, Comparison):
        if result.verdict is not None:
            values["verdict"] = (), str(result.verdict.outcome)
        judged = {**result.quantities, **result.checks}
        for name, each in judged.items():
            values[f"error_{name}"] = (), float(each.error)
        shares = [each.error / each.tolerance for each in judged.values() if each.judged and each.tolerance > 0]
        if shares:
            values[SHARE] = (), float(max(shares))
        for name, claim in result.claims.items():
            values[f"claim_{name}"] = (), str(claim.outcome)
            values[f"claim_{name}_value"] = (), float(claim.value)
    return values


def _of_record(record: xr.Dataset, prefix: str = "") -> Measurements:
    values: Measurements = {}
    for name, variable in record.data_vars.items():
        if variable.dtype.kind not in "fiub" or _CLAIM in variable.dims:
            continue
        if variable.ndim == 0:
            values[f"{prefix}{name}"] = (), float(variable)
            continue
        dimensions, numbers = [], variable.to_numpy().astype(float)
        for axis, dimension in enumerate(map(str, variable.dims)):
            if dimension in CLOCKS and dimension in record.coords:
                numbers = np.apply_along_axis(_on_grid, axis, numbers)
                values[f"{prefix}{dimension}"] = (CURVE,), _on_grid(record[dimension].to_numpy()).tolist()
                dimensions.append(CURVE)
            else:
                values[f"{prefix}count_{dimension}"] = (), float(numbers.shape[axis])
                dimensions.append(f"{dimension}_" if dimension == CURVE else dimension)
        if numbers.size <= _MOST_VALUES:
            values[f"{prefix}{name}"] = tuple(dimensions), numbers.tolist()
    return values


def _on_grid(values: np.ndarray) -> np.ndarray:
    """Interpolate values at positions that divide their index range into equal parts."""
    positions = np.linspace(0, len(values) - 1, POINTS)
    return np.interp(positions, np.arange(len(values)), values.astype(float))


def _require_finite(record: xr.Dataset) -> None:
    """Reject a record of the user that diverged: numbers, or the ends of curves, that are not finite."""
    for name, variable in record.data_vars.items():
        if variable.dtype.kind == "f" and variable.size:
            clocks = [clock for clock in CLOCKS if clock in variable.dims]
            last = variable.isel(dict.fromkeys(clocks, -1)).to_numpy()
            if (clocks or variable.ndim == 0) and not np.isfinite(last).all():
                raise ArithmeticError(f"{name} ends at {last.ravel()[~np.isfinite(last.ravel())][0]}")


def _number(value: Any, name: str) -> float | str:
    """Convert a number or text; a number that is not finite is an error that names it."""
    if isinstance(value, str):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise _without_numbers(value, f" for {name}") from None
    if not math.isfinite(number):
        raise ArithmeticError(f"{name} is {number}")
    return number


def _without_numbers(found: Any, place: str = "") -> InputError:
    kind = type(found).__name__
    remedy = "return a number, a dictionary of numbers, an xarray dataset, or a result of dynascope"
    return InputError(f"the function returned no numbers{place} but {kind}", argument="run", value=kind, remedy=remedy)
