"""Results with named fields: conversion of fields to variables of a record, and a readable repr."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, get_origin, get_type_hints

import numpy as np

from dynascope.validation import require

__all__ = ["short_repr", "variables_of"]

_WIDTH = 90  # characters, beyond which each part has a line
_LISTED = 6  # entries, beyond which an array is shown as shape and range


def variables_of(result: Any) -> Mapping[str, tuple[Sequence[str], Any]]:
    """Return the dimension names and the values of each field of a probe's result, as `make_record` accepts them.

    Args:
        result: A named tuple of arrays whose annotations name their dimensions, such as
            `gap: Annotated[Any, "time layer"]`. If an array has fewer axes than names, the leading names are dropped.
            Fields that are None are omitted. Any other object, such as a mapping from names to dimension names and
            values, is returned unchanged.

    Raises:
        InputError: A field has no annotation with dimension names.

    Example:
        >>> from dynascope.probes.alignment import layer_alignment
        >>> variables_of(layer_alignment([np.eye(2), np.diag([2.0, 1.0])]))["gap"]
        (('layer',), array([0.]))
    """
    if not hasattr(result, "_asdict"):
        return result
    hints, variables = get_type_hints(type(result), include_extras=True), {}
    for name, value in result._asdict().items():
        if value is None:
            continue
        require(
            get_origin(hints.get(name)) is Annotated,
            f"the field {name} of {type(result).__name__} has no dimension names",
            argument=name,
            remedy=f'declare {name}: Annotated[Any, "DIMENSION ..."]',
        )
        names = hints[name].__metadata__[0].split()
        variables[name] = (tuple(names[max(len(names) - np.ndim(value), 0) :]), value)
    return variables


def short_repr(self: Any) -> str:
    """The `__repr__` of a named tuple or data class, with five digits per number and a summary of large arrays.

    Example:
        >>> from typing import NamedTuple
        >>> class Curve(NamedTuple):
        ...     rate: float
        ...     times: np.ndarray
        ...     loss: np.ndarray
        ...
        ...     __repr__ = short_repr
        >>> Curve(1 / 3, np.array([0.0, 0.1 + 0.2]), np.linspace(1, 0, 50))
        Curve(rate=0.33333, times=[0, 0.3], loss=<shape (50,), 0 to 1>)
    """
    names = getattr(self, "_fields", None) or [each.name for each in dataclasses.fields(self) if each.repr]
    fields = [f"{name}={_text(getattr(self, name))}" for name in names]
    return f"{type(self).__name__}({_joined(fields)})"


def _joined(parts: Sequence[str]) -> str:
    """Join the parts on one line if they fit, otherwise on one line each."""
    line = ", ".join(parts)
    if len(line) <= _WIDTH and "\n" not in line:
        return line
    return "\n" + textwrap.indent("".join(f"{each},\n" for each in parts), "    ")


def _text(value: Any) -> str:
    """Format the value of a field, with five digits for every number in it."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, float | complex | np.inexact):
        return f"{value:.5g}"
    if isinstance(value, np.integer):
        return str(value)
    if type(value) in (list, tuple):
        shown = [_text(each) for each in value[:_LISTED]]
        if len(value) > _LISTED:
            shown.append(f"… {len(value)} in all")
        if type(value) is list:
            return f"[{_joined(shown)}]"
        return f"({shown[0]},)" if len(shown) == 1 else f"({_joined(shown)})"
    if type(value) is dict:
        return f"{{{_joined([f'{key!r}: {_text(each)}' for key, each in value.items()])}}}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return _array_text(value)
    return repr(value)


def _array_text(array: Any) -> str:
    """Format an array of any library: its entries if there are few, otherwise its shape and known range."""
    shape = f"shape {tuple(array.shape)}"
    try:
        values = np.asarray(array.detach().cpu() if hasattr(array, "detach") else array)
    except (TypeError, RuntimeError):  # traced, deleted, or of a type that NumPy lacks
        return f"<{shape}>"
    if values.size <= _LISTED:
        return _text(values.tolist())
    if values.dtype == bool:
        return f"<{shape}, {np.count_nonzero(values)} of {values.size} true>"
    if not np.isrealobj(values) or values.dtype.kind not in "iuf":
        return f"<{shape}>"
    finite = values[np.isfinite(values)]
    others = f", {values.size - finite.size} not finite" if finite.size < values.size else ""
    if finite.size == 0:
        return f"<{shape}{others}>"
    low, high = finite.min(), finite.max()
    return f"<{shape}, {f'all {_text(low)}' if low == high else f'{_text(low)} to {_text(high)}'}{others}>"
