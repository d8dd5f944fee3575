"""Command options as dataclass fields: show their bounds in the help and check their values."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, TypeVar

from dynascope.studies.fields import bound_sentences
from dynascope.validation.annotations import checks_of

__all__ = ["check_options", "with_bounds_in_help"]

_Options = TypeVar("_Options", bound=type)


def with_bounds_in_help(options: _Options) -> _Options:
    """Add the bounds of each option to the docstring of a dataclass, so that the help shows them.

    Example:
        >>> from dynascope.cli.user_training import UserTraining
        >>> [line.strip() for line in UserTraining.__doc__.splitlines() if "minutes" in line]
        ['minutes: Time limit of the check; jumps predicted after the end of the check are not scored. Above 0.']
    """
    text = options.__doc__ or ""
    for name, sentence in bound_sentences(options).items():
        # The description of an option ends before the next line with no deeper indentation than the name.
        text = re.sub(rf"(?m)^( +){name}: .*(?:\n\1 +\S.*)*", rf"\g<0> {sentence}", text)
    options.__doc__ = text
    return options


def check_options(command: Any) -> None:
    """Check the values of all options of a command against their annotations.

    Values are checked after parsing, because the parser reports an error in a constructor as a parsing error.

    Args:
        command: A dataclass; fields that are dataclasses are groups of options.

    Raises:
        InputError: A value is out of bounds.

    Example:
        >>> from dynascope.cli.user_training import UserTraining
        >>> check_options(UserTraining(minutes=0.0))
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: minutes is 0.0: choose a finite number above 0.
    """
    for name, check in checks_of(type(command)).items():
        value = getattr(command, name)
        check(name, value)
        if dataclasses.is_dataclass(value):
            check_options(value)
