"""Captions with measured numbers in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from dynascope.arguments import require
from dynascope.errors import InputError
from dynascope.results import Result, from_tree
from dynascope.results.numbers import number
from dynascope.results.tree import AnyResult

__all__ = ["fill_caption"]

_DIGITS = 3
_PLAIN = 1e5  # below which no power of ten is written
_FIELD = re.compile(r"\{([^{}]*)\}")
_PARTS = re.compile(r"(\w+)\.(\w+)(?:\.(error|tolerance))?((?:\[\w+=[^\]]+\])*)((?::\w+)*)")
_REDUCED: dict[str, Callable[[np.ndarray], Any]] = {
    "least": np.min,
    "most": np.max,
    "mean": np.mean,
    "median": np.median,
}
_ENDS = {"first": 0, "last": -1}  # of a curve, and of no more than one
_WAYS = ", ".join(f":{each}" for each in (*_ENDS, *_REDUCED))


def fill_caption(template: str, tree: AnyResult) -> str:
    r"""The text with the numbers that it names.

    A name in braces is `parameters.width`, `agreement.loss` (its error; `agreement.loss.tolerance`), or a variable of
    a side: `observed.slope`, `observed.accuracy:last`, `predicted.strength[mode=2]:most`. A member is chosen by its
    label, or is the `first` or the `last` one, `observed.strength[time=last]:least`. What is left of a variable after
    that is reduced by `first`, `last`, `least`, `most`, `mean` or `median`, unless it is one number; `percent` at the
    end writes a share of one as a percentage. What is not known is a dash.

    Args:
        template: The text; braces that are doubled stay braces.
        tree: The tree or record whose numbers they are.

    Returns:
        The text.

    Raises:
        InputError: A name that the tree does not hold, or a variable of several numbers with no word how to reduce it.

    Example:
        >>> from dynascope.results import make_record
        >>> record = make_record({"accuracy": (["time"], [0.5, 0.98])}, {"time": [0.0, 1.0]})
        >>> fill_caption("Accuracy rises to {observed.accuracy:last:percent}.", record)
        'Accuracy rises to 98\xa0%.'
    """
    view = from_tree(tree)
    kept = template.replace("{{", "\0").replace("}}", "\1")
    return _FIELD.sub(lambda field: _value(field[1], view), kept).replace("\0", "{").replace("\1", "}")


def _value(field: str, view: Result) -> str:
    parts = _PARTS.fullmatch(field)
    if parts is None:
        raise InputError(
            f"the caption names {field!r}",
            argument="caption",
            value=field,
            remedy="name a number as group.name, such as observed.accuracy:last or parameters.width",
        )
    group, name, part, chosen, ways = parts.groups()
    *reductions, last = ways.split(":")[1:] or [""]
    if last != "percent":
        reductions, last = [*reductions, *([last] if last else [])], ""
    sides = {**view.sides, **({"residual": view.residual} if view.residual is not None else {})}
    if group in sides:
        value = _reduced(field, _member(field, sides[group], name, chosen), reductions)
    else:
        require(
            group in ("parameters", "agreement"),
            f"the caption names {field!r}, and the tree has no {group!r}",
            argument="caption",
            value=field,
            remedy=f"choose from {', '.join((*sides, 'parameters', 'agreement'))}",
        )
        known: Mapping[str, Any] = view.parameters if group == "parameters" else view.quantities
        _is_there(field, name, known)
        value: Any = known[name].value if group == "parameters" else known[name].to_plain()[part or "error"]
    if isinstance(value, str):
        return value
    value = np.nan if value is None else value
    # Zero has no sign.
    told = f"{_number(round(100 * value, _DIGITS) + 0.0)} %" if last else _number(value)
    # No line ends within a number.
    return told.replace(" ", "\N{NO-BREAK SPACE}")


def _number(value: float) -> str:
    """A few digits; without a power of ten up to a hundred thousand, as people write it in a sentence."""
    plain = 10**_DIGITS <= abs(value) < _PLAIN and not isinstance(value, int)
    return number(int(float(f"{value:.{_DIGITS}g}")) if plain else value, _DIGITS)


def _member(field: str, record: xr.Dataset, name: str, chosen: str) -> xr.DataArray:
    _is_there(field, name, record.variables)
    values = record[name]
    for dimension, label in re.findall(r"\[(\w+)=([^\]]+)\]", chosen):
        _is_there(field, dimension, values.coords)
        labels = values[dimension].to_numpy()
        if label in _ENDS and len(labels):
            values = values.isel({dimension: _ENDS[label]})
            continue
        at = labels == (label if labels.dtype.kind == "U" else float(label))
        _is_there(field, label, labels[at].astype(str) if at.any() else labels, found=bool(at.any()))
        values = values.isel({dimension: int(np.argmax(at))})
    return values


def _reduced(field: str, values: xr.DataArray, reductions: list[str]) -> Any:
    array = np.atleast_1d(values.to_numpy())
    if array.size == 1:
        return array.item()
    way = reductions[0] if len(reductions) == 1 else ""
    require(
        way in _REDUCED or (way in _ENDS and array.ndim == 1),
        f"the caption names {field!r}, which is {array.size} numbers",
        argument="caption",
        value=field,
        remedy=f"choose a member by [dimension=label], or end in one of {_WAYS}",
    )
    if way in _ENDS:
        return array[_ENDS[way]].item() if array.size else np.nan
    known = array[~np.isnan(array)]
    return float(_REDUCED[way](known)) if known.size else np.nan


def _is_there(field: str, name: str, names: Any, *, found: bool | None = None) -> None:
    require(
        name in names if found is None else found,
        f"the caption names {field!r}, and there is no {name!r}",
        argument="caption",
        value=field,
        remedy=f"choose from {', '.join(map(str, names))}",
    )
