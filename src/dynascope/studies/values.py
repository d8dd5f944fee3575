"""The values that a study states of its variables, and the record that contains them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import xarray as xr

from dynascope.results import make_record

__all__ = ["Values", "filled", "values_record"]

#: What a study states of its variables: for each name its values along `axes`, or the names of its axes and the values.
Values = Mapping[str, Any]
_FIRST = dict.fromkeys(("mode", "layer", "jump", "skill"), 1)  # first label of axes that are not counted from zero


def values_record(
    values: Values,
    *,
    axes: tuple[str, ...],
    labels: Mapping[str, Any],
    attributes: Mapping[str, Any],
    names: Mapping[str, tuple[str, str]],
) -> xr.Dataset:
    """Make a record of values.

    Args:
        values: For each variable its values along `axes`, or the pair of the names of its axes and its values. What has
            the name of its only axis are labels, which replace those of `labels`.
        axes: Names of the axes of variables that do not name their own.
        labels: Labels by axis. An axis without labels is numbered.
        attributes: Attributes of the record.
        names: Long names and units by variable.

    Raises:
        InputError: Values do not fit their axes or the labels.

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
    # Claims and effects come with intervals of this confidence.
    said: dict[str, Any] = {"confidence": 0.95} if {"low", "high"} <= variables.keys() else {}
    return make_record(variables, coordinates, attributes={**said, **attributes}, names=names)


def filled(template: str, of: Any) -> str:
    """Fill attributes of an object into a template with names in braces.

    Args:
        template: The text. A list of numbers is written with commas.
        of: The object.

    Example:
        >>> filled("rates {real}, from {imag:g}", 2.0)
        'rates 2.0, from 0'
    """
    return template.format_map(_Attributes(of))


class _Attributes:
    """The attributes of an object by name, as in a mapping; lists of numbers with commas."""

    def __init__(self, of: Any):
        self.of = of

    def __getitem__(self, name: str) -> Any:
        value = getattr(self.of, name)
        numbers = isinstance(value, list | tuple) and all(isinstance(each, int | float) for each in value)
        return ", ".join(f"{each:g}" for each in value) if numbers else value


def _names_axes(names: Any) -> bool:
    each = (names,) if isinstance(names, str) else names
    return isinstance(each, tuple | list) and all(isinstance(name, str) for name in each)
