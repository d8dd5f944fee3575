"""Validation of user functions, with errors that name the argument through which a function was passed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from dynascope.errors import InputError
from dynascope.validation.numbers import require, shown_error

__all__ = ["calling", "require_function"]


@contextlib.contextmanager
def calling(argument: str, name: str, form: str) -> Iterator[None]:
    """Convert errors of a user function into an `InputError` that names its argument.

    Args:
        argument: Name of the argument.
        name: Name of the function.
        form: Requirement on the function, which becomes the remedy of the error.

    Raises:
        InputError: The function has a different signature, or performs an operation that JAX does not support.

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
    """Check that a function is callable and hashable, since compiled programs are cached by their functions.

    Raises:
        InputError: The function is not callable or not hashable.
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
            f"{shown} has type {type(function).__name__}, which is not hashable",
            argument=argument,
            value=type(function).__name__,
            remedy="give a plain function, or an object of a hashable class, such as a frozen dataclass",
        ) from error
