"""Checks of individual numbers and choices."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from dynascope.errors import InputError

__all__ = [
    "require",
    "require_at_least",
    "require_choice",
    "shown",
    "shown_error",
]

_MOST_DIGITS, _MOST_LETTERS = 20, 80
_MOST_OF_AN_ERROR = 200  # letters


def shown(value: Any) -> str:
    """Format a value for an error message: short and on one line.

    Example:
        >>> shown("frob"), shown(1.5), shown(10**400)
        ('frob', '1.5', 'an integer of 401 digits')
    """
    if isinstance(value, int) and abs(value) >= 10**_MOST_DIGITS:
        least = math.floor((value.bit_length() - 1) * math.log10(2))
        return f"an integer of {least + 1 + (abs(value) >= 10 ** (least + 1))} digits"
    shape = getattr(value, "shape", ())
    if shape:
        return f"an array of shape {tuple(shape)}"
    try:
        text = " ".join(str(value).split())
    except Exception:  # raised by a user's class
        text = f"of the type {type(value).__name__}"
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]} … (of the type {type(value).__name__})"


def _quoted(value: Any) -> str:
    """Format a value as `shown` does, but with text in quotes, so that it is not mistaken for a number."""
    return repr(value) if isinstance(value, str) and len(value) < _MOST_LETTERS else shown(value)


def shown_error(error: BaseException) -> str:
    """Shorten the message of another library's error to its first line, or to its type if it is empty.

    Example:
        >>> shown_error(ValueError("It failed.")), shown_error(AssertionError())
        ('It failed', 'AssertionError')
    """
    first = (str(error).strip().splitlines() or [""])[0].rstrip(".")
    return first[:_MOST_OF_AN_ERROR] or type(error).__name__


def require(condition: Any, problem: str, *, argument: str, value: Any = None, remedy: str) -> None:
    """Raise `InputError` unless the condition holds."""
    if not condition:
        raise InputError(problem, argument=argument, value=value, remedy=remedy)


def require_choice(name: str, value: Any, choices: Collection[Any]) -> None:
    """Raise `InputError` unless the value is one of the choices.

    Example:
        >>> require_choice("kind", "rleu", ("relu", "linear"))
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: kind is 'rleu': choose 'relu' or 'linear'.
    """
    try:
        valid = bool(value in choices)
    except (TypeError, ValueError):
        valid = False
    named = [repr(each) for each in choices]
    remedy = " or ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
    require(valid, f"{name} is {_quoted(value)}", argument=name, value=shown(value), remedy=f"choose {remedy}")


def require_at_least(name: str, value: Any, least: float) -> float:
    """Return a number after checking that it is not below `least`; it may be infinite.

    Args:
        name: Name of the argument, for the message.
        value: The number.
        least: Smallest value allowed.

    Raises:
        InputError: If the value is not a number, or is below `least`.

    Example:
        >>> require_at_least("context_length", 20, 1)
        20.0
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    require(
        number >= least,
        f"{name} is {shown(value)}",
        argument=name,
        value=value,
        remedy=f"choose a number of at least {least:g}, or infinity",
    )
    return number
