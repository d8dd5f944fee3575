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
"""For each name, its dimensions besides those of the sweep (none or one), and its number, text or list of numbers."""

CURVE, POINTS = "point", 65
SHARE = "error_share"  # the largest error of a comparison in units of its tolerance
CLOCKS = ("time", "accelerated_time", "step", "epoch")
_JUMP = "jump"  # dimension of staircases, which are lists even if there is one jump
_CLAIM = "hypothesis"  # dimension of claims, which are stored by name
_LONGEST = 1024  # values of a list that is not a curve
_PREDICTED = "predicted_"


def measurements(found: Any) -> Measurements:
    """Extract numbers and curves from what a function or a study returned.

    A number is stored as `value`, and a mapping of numbers under its names. From a record, every number and every
    variable with one dimension is stored; dimensions of length one do not count. Curves over time, steps or epochs are
    interpolated on 65 points that divide the recorded times into equal parts, and the times of these points are stored
    beside them. Other variables with one dimension, such as the jumps of a staircase, are stored as lists, with their
    length as `count_…`. From a comparison, the verdict, the error of each quantity, and the value and outcome of each
    claim are stored as well, and the largest error in units of its tolerance as `error_share`. Predicted variables
    start with `predicted_`.

    Args:
        found: A number, a mapping of numbers, an xarray dataset, a prediction, an observation or a comparison.

    Raises:
        InputError: It contains no numbers.

    Example:
        >>> measurements(0.5)
        {'value': ((), 0.5)}
        >>> record = xr.Dataset({"loss": ("time", [1.0, 0.0])}, {"time": [0.0, 2.0]})
        >>> {name: (dims, len(values)) for name, (dims, values) in measurements(record).items()}
        {'loss': (('point',), 65), 'time': (('point',), 65)}
    """
    if isinstance(found, Result):
        values = _of_result(found)
    elif isinstance(found, xr.Dataset):
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
        plain = variable if variable.dims == (_JUMP,) else variable.squeeze()
        if plain.dtype.kind not in "fiub" or plain.ndim > 1 or _CLAIM in variable.dims:
            continue
        if plain.ndim == 0:
            values[f"{prefix}{name}"] = (), float(plain)
        elif plain.dims[0] in CLOCKS and plain.dims[0] in record.coords:
            clock = str(plain.dims[0])
            values[f"{prefix}{name}"] = (CURVE,), _on_grid(plain.to_numpy())
            values[f"{prefix}{clock}"] = (CURVE,), _on_grid(record[clock].to_numpy())
        elif plain.size <= _LONGEST:
            dimension = str(plain.dims[0])
            values[f"{prefix}{name}"] = (dimension,), plain.to_numpy().astype(float).tolist()
            values[f"{prefix}count_{dimension}"] = (), float(plain.size)
    return values


def _on_grid(values: np.ndarray) -> list[float]:
    """Interpolate values at positions that divide their index range into equal parts."""
    positions = np.linspace(0, len(values) - 1, POINTS)
    return np.interp(positions, np.arange(len(values)), values.astype(float)).tolist()


def _number(value: Any, name: str) -> float | str:
    """Convert a number or text; a number that is not finite is an error that names it."""
    if isinstance(value, str):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise _without_numbers(value) from None
    if not math.isfinite(number):
        raise ArithmeticError(f"{name} is {number}")
    return number


def _without_numbers(found: Any) -> InputError:
    kind = type(found).__name__
    remedy = "return a number, a dictionary of numbers, an xarray dataset, or a result of dynascope"
    return InputError(f"the function returned no numbers but {kind}", argument="run", value=kind, remedy=remedy)
