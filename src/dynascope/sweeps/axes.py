"""The axes of a sweep: names with values, given as sequences or as text such as "0.1:2:17log"."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dynascope.errors import InputError
from dynascope.validation import require

__all__ = ["Value", "checked_axes", "parse_axis"]

Value = int | float | str | bool
_REMEDY = "give a:b:n (n values from a to b), a:b:nlog (on a logarithmic scale), a:b (whole numbers from a to b − 1), "
_REMEDY += "or values separated by commas"


def parse_axis(text: str) -> tuple[str, list[Value]]:
    """Parse an axis from text.

    `name=a:b:n` has n evenly spaced values from a to b, and `name=a:b:nlog` has n values on a logarithmic scale.
    `name=a:b` has the whole numbers from a to b − 1, as `range` does. `name=x,y,z` lists the values. If a and b are
    whole numbers and all values are whole, the values are integers.

    Args:
        text: The name and the values.

    Returns:
        The name, with underscores instead of hyphens, and the values.

    Raises:
        InputError: The text has another form, the number of values is below one, or a logarithmic axis has an end that
            is zero or negative.

    Example:
        >>> parse_axis("scale=0.1:10:3log"), parse_axis("width=8:32:3log")
        (('scale', [0.1, 1.0, 10.0]), ('width', [8, 16, 32]))
        >>> parse_axis("seed=0:3"), parse_axis("imbalance=-1:1:3"), parse_axis("inputs=whitened,low-rank")
        (('seed', [0, 1, 2]), ('imbalance', [-1, 0, 1]), ('inputs', ['whitened', 'low-rank']))
    """
    name, equals, values = (part.strip() for part in text.partition("="))
    form = bool(name and equals and values)
    require(
        form, f"over is {text!r}", argument="over", value=text, remedy="give NAME=VALUES, such as scale=0.1:2:17log"
    )
    name, parts = name.replace("-", "_"), [part.strip() for part in values.split(":")]
    if len(parts) == 1:
        listed = [part.strip() for part in values.split(",")]
        require(all(listed), f"over is {text!r}", argument="over", value=text, remedy="remove the empty value")
        return name, [_value(part) for part in listed]
    ends = [_value(part) for part in parts[:2]]
    finite = all(_is_number(end) and math.isfinite(float(end)) for end in ends)
    require(finite and len(parts) <= 3, f"over is {text!r}", argument="over", value=text, remedy=_REMEDY)
    low, high = (float(end) for end in ends)
    whole = all(isinstance(end, int) for end in ends)
    if len(parts) == 2:
        remedy = "give a:b with whole numbers a < b, or a:b:n for n values from a to b"
        require(whole and low < high, f"over is {text!r}", argument="over", value=text, remedy=remedy)
        return name, list(range(int(low), int(high)))
    count, logarithmic = parts[2].removesuffix("log"), parts[2].endswith("log")
    enough = count.isdecimal() and int(count) >= (1 if low == high else 2)
    require(enough, f"over is {text!r}", argument="over", value=text, remedy=f"{_REMEDY}, with n of at least 2")
    if logarithmic:
        problem = f"the logarithmic axis {name} goes from {low:g} to {high:g}"
        require(low > 0 and high > 0, problem, argument="over", value=text, remedy="choose two positive ends")
    return name, _spaced(low, high, int(count), logarithmic=logarithmic, whole=whole)


def checked_axes(over: Mapping[str, Any]) -> dict[str, list[Value]]:
    """Convert the values of each axis to plain numbers, texts or booleans, and check that none is repeated.

    Raises:
        InputError: There is no axis, an axis is empty, or a value is repeated, not finite or of another type.

    Example:
        >>> import numpy as np
        >>> checked_axes({"scale": np.array([0.5, 1.0]), "seed": range(2)})
        {'scale': [0.5, 1.0], 'seed': [0, 1]}
    """
    remedy = "give the values of at least one argument, such as over={'seed': range(4)}"
    require(
        isinstance(over, Mapping) and len(over) > 0, f"over is {over!r}", argument="over", value=over, remedy=remedy
    )
    return {str(name): _checked_values(str(name), values) for name, values in over.items()}


def _checked_values(name: str, values: Any) -> list[Value]:
    if isinstance(values, str):
        return _checked_values(name, parse_axis(f"{name}={values}")[1])
    try:
        plain = [each.item() if isinstance(each, np.generic) else each for each in values]
    except TypeError:
        raise InputError(
            f"the values of {name} in over are {values!r}", argument="over", value=name, remedy="give a list of values"
        ) from None
    require(plain, f"over has no values of {name}", argument="over", value=name, remedy="give at least one value")
    for each in plain:
        valid = isinstance(each, str | bool) or (_is_number(each) and math.isfinite(each))
        remedy = "give finite numbers, texts or booleans"
        require(valid, f"over contains {name} = {each!r}", argument="over", value=repr(each), remedy=remedy)
    kinds = {str if isinstance(each, str) else bool if isinstance(each, bool) else float for each in plain}
    remedy = "give values of one kind"
    require(len(kinds) == 1, f"over mixes kinds of values of {name}", argument="over", value=name, remedy=remedy)
    twice = sorted({each for each in plain if plain.count(each) > 1})
    problem = f"over contains {name} = {', '.join(map(str, twice))} twice"
    require(not twice, problem, argument="over", value=name, remedy="give each value once")
    if kinds == {float} and any(isinstance(each, float) for each in plain):
        return [float(each) for each in plain]
    return plain


def _spaced(low: float, high: float, count: int, *, logarithmic: bool, whole: bool) -> list[Value]:
    values = np.geomspace(low, high, count) if logarithmic else np.linspace(low, high, count)
    rounded = [_decimal(each) for each in values.tolist()]
    if whole and all(each.is_integer() for each in rounded):
        return [int(each) for each in rounded]
    return list(rounded)


def _decimal(value: float) -> float:
    """The closest short decimal number if the value differs from it only by rounding errors."""
    short = float(f"{value:.6g}")
    return short if math.isclose(short, value, rel_tol=1e-14) else value


def _value(text: str) -> Value:
    """Convert text to an integer, a float or a boolean if possible."""
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            pass
    return {"True": True, "False": False}.get(text, text)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
