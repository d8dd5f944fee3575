"""Check a user's functions, and name the argument by which a failing one was given."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from dynascope.errors import InputError
from dynascope.validation.numbers import require, shown_error

__all__ = ["calling", "require_function"]


@contextlib.contextmanager
def calling(argument: str, name: str, form: str) -> Iterator[None]:
    """Name the argument in errors while a user's function is called.

    Args:
        argument: What it was given as.
        name: Its name.
        form: What is asked of it, for the message.

    Raises:
        InputError: It has another signature, or does what JAX does not.

    Example:
        >>> with calling("loss", "half", "give a JAX function of outputs and targets"):
        ...     (lambda outputs: outputs)(1, 2)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: loss half cannot be applied (<lambda>() takes 1 positional argument but 2 were
        given): give a JAX function of outputs and targets.
    """
    try:
        yield
    except InputError:
        raise
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        sentence = shown_error(error)
        raise InputError(
            f"{argument} {name} cannot be applied ({sentence})", argument=argument, value=name, remedy=form
        ) from error


def require_function(argument: str, function: Any, name: str = "") -> None:
    """Check that it can be called, and hashed, since compiled programs are found by their functions.

    Raises:
        InputError: It cannot.
    """
    shown = f"{argument} {name}".rstrip()
    require(
        callable(function),
        f"{shown} is {function!r}",
        argument=argument,
        value=str(function),
        remedy="give a function",
    )
    try:
        hash(function)
    except TypeError as error:
        raise InputError(
            f"{shown}, of the type {type(function).__name__}, cannot be hashed",
            argument=argument,
            value=type(function).__name__,
            remedy="give a plain function, or an object of a class that has a hash, such as a frozen dataclass",
        ) from error
