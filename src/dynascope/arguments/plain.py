"""Arguments as functions compute with them: arrays of other classes as NumPy's own, fractions and decimals as floats.

A matrix multiplies by `*`, a masked array keeps the values that it hides, a fraction is no number to a compiled
program, an array without axes is none to a generator of random numbers, and 1e3 is none to `range`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import operator
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar, cast

from dynascope.arguments.numbers import require

__all__ = ["plain", "plainly"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_USUAL = {int, float, bool, str, type(None)}
_WHOLE = (int, "int", "int | None")  # annotations of whole numbers
_MOST_WHOLE = 10**12  # beyond which no number of anything fits


def plainly(function: _Function) -> _Function:
    """The function, which gets every argument as `plain` says it, and integers where it wants some.

    These may be given as floats that are whole, or as arrays without axes.

    Args:
        function: Any function.

    Returns:
        A function of the same arguments.

    Example:
        >>> @plainly
        ... def doubled(number: int):
        ...     return 2 * number
        >>> doubled(1e3)
        2000
    """
    parameters = inspect.signature(function).parameters
    positional = [name for name, each in parameters.items() if each.kind <= each.POSITIONAL_OR_KEYWORD]
    further = next((name for name, each in parameters.items() if each.kind is each.VAR_POSITIONAL), "argument")
    annotations = getattr(inspect.unwrap(function), "__annotations__", {})
    whole = {name for name, said in annotations.items() if said in _WHOLE}

    def meant(name: str, value: Any) -> Any:
        return _as_integer(plain(name, value)) if name in whole else plain(name, value)

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        names = itertools.chain(positional, itertools.repeat(further))
        return function(*map(meant, names, arguments), **{name: meant(name, value) for name, value in named.items()})

    return cast(_Function, call)


def plain(name: str, value: Any) -> Any:
    """What an argument says, without what its class would do to the arithmetic; also within a row or a dictionary.

    Args:
        name: Name of the argument, for the message.
        value: Anything.

    Raises:
        InputError: A masked array that hides a value.

    Example:
        >>> plain("scale", Fraction(1, 4)), plain("widths", [2, 3])
        (0.25, [2, 3])
    """
    kind = type(value)
    if kind in _USUAL:
        return value
    if isinstance(value, Fraction | Decimal):
        try:
            return float(value)
        except (OverflowError, ValueError):  # refused by the function
            return value
    if isinstance(value, list | tuple):
        if {*map(type, value)} <= _USUAL | {list, tuple}:
            return value
        parts = [plain(name, each) for each in value]
        if all(map(operator.is_, parts, value)):
            return value
        return kind(*parts) if hasattr(value, "_fields") else kind(parts)
    if kind is dict:
        parts = {key: plain(name, each) for key, each in value.items()}
        return value if all(map(operator.is_, parts.values(), value.values())) else parts
    return _plain_array(name, value) if "numpy" in sys.modules else value


def _plain_array(name: str, value: Any) -> Any:
    np = sys.modules["numpy"]
    if not isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.ma.MaskedArray):
        masked = int(np.ma.count_masked(value))
        require(
            masked == 0,
            f"{name} is an array of which {masked} {'value is' if masked == 1 else 'values are'} masked",
            argument=name,
            value=type(value).__name__,
            remedy="drop what is masked, or fill it by .filled()",
        )
    return value if type(value) is np.ndarray else np.asarray(value)


def _as_integer(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _MOST_WHOLE else value
    with contextlib.suppress(TypeError):
        return operator.index(value) if getattr(value, "shape", None) == () else value
    return value
