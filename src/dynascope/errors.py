"""The two ways a call can fail, the input was bad or the run went wrong; and how part of a run can.

Both carry what a machine needs to report the failure (the argument, the value, the remedy) beside the sentence that a
person reads.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

__all__ = ["DivergenceError", "DivergenceWarning", "InputError", "no_member_lost"]

_LONGEST = 1000  # letters


class InputError(ValueError):
    """An argument is outside the domain of what was asked.

    Args:
        problem: One clause that says what is wrong, with the value received.
        argument: Name of the offending argument.
        value: The value received, or a short description of it.
        remedy: One clause that says what to do instead.

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
    """A training run left the finite numbers or could not be continued.

    Args:
        problem: One clause that says what happened.
        time: Gradient-flow time at which it happened.
        remedy: One clause that says what to try.
    """

    def __init__(self, problem: str, *, time: float, remedy: str):
        super().__init__(f"{problem}: {remedy}.")
        self.time = time
        self.remedy = remedy


class DivergenceWarning(UserWarning):
    """Some members of an ensemble diverged, and the others went on.

    Args:
        problem: One clause that says what happened, and to whom.
        time: Gradient-flow time at which it happened to the first of them.
        remedy: One clause that says what to try.
    """

    def __init__(self, problem: str, *, time: float, remedy: str):
        super().__init__(f"{problem}; the others went on: {remedy}.")
        self.problem = problem
        self.time = time
        self.remedy = remedy


def _in_a_line(text: str) -> str:
    """The text on one line, of a length that can be read, whatever value is told in it."""
    line = " ".join(text.splitlines())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …"


@contextlib.contextmanager
def no_member_lost() -> Iterator[None]:
    """While an ensemble is trained of which nothing is to be judged by those members that are left.

    Raises:
        DivergenceError: One of them diverged, of which else a `DivergenceWarning` would tell.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", DivergenceWarning)
        try:
            yield
        except DivergenceWarning as warning:
            raise DivergenceError(warning.problem, time=warning.time, remedy=warning.remedy) from None
