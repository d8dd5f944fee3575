"""Variables of a study by name, and the record that contains them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import xarray as xr

from dynascope.results import make_record

__all__ = ["Values", "filled", "values_record"]

#: Values of variables by name: an array along the default axes, or a pair of axis names and an array.
Values = Mapping[str, Any]
_FIRST = dict.fromkeys(("mode", "layer", "jump", "skill"), 1)  # first label of axes that are numbered from one


def values_record(
    values: Values,
    *,
    axes: tuple[str, ...],
    labels: Mapping[str, Any],
    attributes: Mapping[str, Any],
    names: Mapping[str, tuple[str, str]],
) -> xr.Dataset:
    """Create a record of the given values.

    Args:
        values: For each variable, its values along `axes`, or a pair of axis names and values. A variable with the name
            of its only axis contains labels, which replace those of `labels`.
        axes: Names of the axes of variables that are given without axes.
        labels: Labels by axis. An axis without labels is numbered.
        attributes: Attributes of the record.
        names: Long names and units by variable.

    Raises:
        InputError: The values do not match their axes or labels.

    Example:
        >>> attributes = {"task": "identity", "network": "linear"}
        >>> record = values_record({"loss": [1.0, 0.5]}, axes=("mode",), labels={}, attributes=attributes, names={})
        >>> record["loss"].dims, record["mode"].values.tolist()
        (('mode',), [1, 2])
    """
    variables, coordinates, labels = {}, {}, dict(labels)
    for name, given in values.items():
        named = isinstance(given, tuple) and len(given) == 2 and _names_axes(given[0])
        along, array = given if named else (axes, given)
        array = np.asarray(jax.device_get(array))
        along = (along,) if isinstance(along, str) else tuple(along)
        if along == (name,):
            labels[name] = array
        else:
            variables[name] = (along, array)
    for along, array in variables.values():
        for axis, length in zip(along, array.shape, strict=False):
            numbers = np.arange(length) + _FIRST.get(axis, 0)
            coordinates.setdefault(axis, np.asarray(labels.get(axis, numbers)))
    # The intervals of claims and effects have this confidence level.
    confidence: dict[str, Any] = {"confidence": 0.95} if {"low", "high"} <= variables.keys() else {}
    return make_record(variables, coordinates, attributes={**confidence, **attributes}, names=names)


def filled(template: str, of: Any) -> str:
    """Replace the names in braces in a template with the attributes of an object.

    Args:
        template: Text with names in braces. Lists of numbers are written with commas.
        of: The object whose attributes have these names.

    Example:
        >>> filled("rates {real}, from {imag:g}", 2.0)
        'rates 2.0, from 0'
    """
    return template.format_map(_Attributes(of))


class _Attributes:
    """Mapping view of the attributes of an object; lists of numbers become comma-separated text."""

    def __init__(self, of: Any):
        self.of = of

    def __getitem__(self, name: str) -> Any:
        value = getattr(self.of, name)
        numbers = isinstance(value, list | tuple) and all(isinstance(each, int | float) for each in value)
        return ", ".join(f"{each:g}" for each in value) if numbers else value


def _names_axes(names: Any) -> bool:
    each = (names,) if isinstance(names, str) else names
    return isinstance(each, tuple | list) and all(isinstance(name, str) for name in each)
