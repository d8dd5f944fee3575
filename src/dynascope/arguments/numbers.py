"""Checks of single numbers and choices."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, SupportsIndex

from dynascope.errors import InputError

__all__ = [
    "require",
    "require_between",
    "require_choice",
    "require_context",
    "require_count",
    "require_positive",
    "require_seed",
]


def require(condition: Any, problem: str, *, argument: str, value: Any = None, remedy: str) -> None:
    """Raise `InputError` unless the condition holds."""
    if not condition:
        raise InputError(problem, argument=argument, value=value, remedy=remedy)


def require_positive(**arguments: Any) -> None:
    """Raise `InputError` unless every named number is finite and positive.

    Example:
        >>> require_positive(width=3, scale=1e-8)
    """
    for name, value in arguments.items():
        try:
            valid = math.isfinite(value) and value > 0
        except (TypeError, ValueError, OverflowError):
            valid = False
        require(
            valid,
            f"{name} is {value}",
            argument=name,
            value=value,
            remedy="choose a finite positive number",
        )


def require_count(*, least: int = 1, most: float = math.inf, **arguments: Any) -> None:
    """Raise `InputError` unless every named number is whole and within the bounds.

    Example:
        >>> require_count(width=3, samples=10.0)
        >>> require_count(layers=2.5)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: layers is 2.5: choose a whole number of at least 1.
    """
    bounds = f"of at least {least}" if math.isinf(most) else f"from {least} to {most}"
    for name, value in arguments.items():
        try:
            valid = math.isfinite(value) and value == int(value) and least <= int(value) <= most
        except (TypeError, ValueError, OverflowError):
            valid = False
        require(valid, f"{name} is {value}", argument=name, value=value, remedy=f"choose a whole number {bounds}")


def require_between(
    least: float, most: float, *, open_below: bool = False, open_above: bool = False, **arguments: Any
) -> None:
    """Raise `InputError` unless every named number is finite and within the bounds, which count unless open.

    Example:
        >>> require_between(0, 1, open_below=True, fraction=1.0)
        >>> require_between(0, 1, probability=1.5)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: probability is 1.5: choose a number from 0 to 1.
    """
    low = f"above {least:g}" if open_below else f"from {least:g}"
    high = f"below {most:g}" if open_above else f"to {most:g}"
    for name, value in arguments.items():
        try:
            valid = math.isfinite(value) and (value > least if open_below else value >= least)
            valid = valid and (value < most if open_above else value <= most)
        except (TypeError, ValueError, OverflowError):
            valid = False
        require(
            valid,
            f"{name} is {value}",
            argument=name,
            value=value,
            remedy=f"choose a number {low}{' and ' if open_below or open_above else ' '}{high}",
        )


def require_choice(name: str, value: Any, choices: Collection[Any]) -> None:
    """Raise `InputError` unless the value is one of the choices.

    Example:
        >>> require_choice("kind", "rleu", ("relu", "linear"))
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: kind is 'rleu': choose 'relu' or 'linear'.
    """
    try:
        valid = value in choices
    except TypeError:
        valid = False
    named = [repr(each) for each in choices]
    remedy = " or ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
    require(valid, f"{name} is {value!r}", argument=name, value=str(value), remedy=f"choose {remedy}")


def require_seed(seed: Any) -> None:
    """Raise `InputError` unless the seed is a whole number from zero.

    Example:
        >>> require_seed(0)
    """
    require(
        isinstance(seed, SupportsIndex) and int(seed) >= 0,
        f"seed is {seed}",
        argument="seed",
        value=seed,
        remedy="choose zero or a positive whole number",
    )


def require_context(context_length: Any) -> float:
    """Return the number N of labelled examples in a prompt after checking that it is at least one; it may be infinite.

    Example:
        >>> require_context(20)
        20.0
    """
    require(
        context_length >= 1,
        f"context_length is {context_length}",
        argument="context_length",
        value=context_length,
        remedy="choose at least one example, or infinity",
    )
    return float(context_length)
