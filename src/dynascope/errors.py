"""Exceptions for invalid input and diverging runs, and a warning for diverging ensemble members.

Besides a readable message, they have attributes that programs can read. `InputError` has the name of the argument, the
value received and a remedy; the other two have the time of the failure and a remedy.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

__all__ = ["DivergenceError", "DivergenceWarning", "InputError", "no_member_lost"]

_LONGEST = 1000  # characters


class InputError(ValueError):
    """Raised if an argument is outside its domain.

    Args:
        problem: One clause that describes the problem, with the value received.
        argument: Name of the invalid argument.
        value: The value received, or a short description of it.
        remedy: One clause that describes how to fix the problem.

    Example:
        >>> raise InputError("scale is -1.0", argument="scale", value=-1.0, remedy="choose a positive number")
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: scale is -1.0: choose a positive number.
    """

    def __init__(self, problem: str, *, argument: str, value: Any = None, remedy: str):
        super().__init__(f"{_in_a_line(problem)}: {remedy}.")
        self.argument = argument
        self.value = value
        self.remedy = remedy


class DivergenceError(RuntimeError):
    """Raised if a training run diverges or its integration fails.

    Args:
        problem: One clause that describes the failure.
        time: Gradient-flow time of the failure.
        remedy: One clause that describes what to try.
    """

    def __init__(self, problem: str, *, time: float, remedy: str):
        super().__init__(f"{problem}: {remedy}.")
        self.time = time
        self.remedy = remedy


class DivergenceWarning(UserWarning):
    """Issued if some members of an ensemble diverge while the others continue.

    Args:
        problem: One clause that describes the failure and names the members.
        time: Gradient-flow time of the first failure.
        remedy: One clause that describes what to try.
    """

    def __init__(self, problem: str, *, time: float, remedy: str):
        super().__init__(f"{problem}; the other members continued: {remedy}.")
        self.problem = problem
        self.time = time
        self.remedy = remedy


def _in_a_line(text: str) -> str:
    """Join the lines of a message, and truncate the message if it is long."""
    line = " ".join(text.splitlines())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …"


@contextlib.contextmanager
def no_member_lost() -> Iterator[None]:
    """Turn `DivergenceWarning` into `DivergenceError`, for ensembles in which every member must succeed.

    Raises:
        DivergenceError: If a member diverges.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", DivergenceWarning)
        try:
            yield
        except DivergenceWarning as warning:
            raise DivergenceError(warning.problem, time=warning.time, remedy=warning.remedy) from None
