"""The options of a command that differ from their defaults, and the command line that sets them."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import Any, get_type_hints

__all__ = ["changed_options", "option_names", "option_words"]


def changed_options(command: Any, *, without: Collection[str] = (), always: Collection[str] = ()) -> dict[str, Any]:
    """Return the options of a command that differ from their defaults, by name.

    Args:
        command: A dataclass; fields that are dataclasses are groups of options.
        without: Names of options to leave out.
        always: Names of options to include even if they have their default values.

    Example:
        >>> @dataclasses.dataclass
        ... class Size:
        ...     width: int = 50
        >>> @dataclasses.dataclass
        ... class Command:
        ...     size: Size
        ...     seed: int = 0
        >>> changed_options(Command(Size(20)))
        {'width': 20}
    """
    chosen = ((name, value) for name, value, usual in _options(command) if value != usual or name in always)
    return {name: value for name, value in chosen if name not in without}


def option_words(options: Mapping[str, Any]) -> list[str]:
    """Return the command-line arguments that set these options.

    Example:
        >>> option_words({"batch_size": 3, "target": ("a", "b"), "check": True, "raw": False})
        ['--batch-size', '3', '--target', 'a', 'b', '--check', '--no-raw']
    """
    words = []
    for name, value in options.items():
        given = value if isinstance(value, tuple) else () if isinstance(value, bool) else (value,)
        words += [f"--{'no-' if value is False else ''}{name.replace('_', '-')}", *map(str, given)]
    return words


def option_names(command: type) -> list[str]:
    """Return the names of the options of a command.

    Args:
        command: A dataclass; fields that are dataclasses are groups of options.

    Example:
        >>> from dynascope.cli.which import Which
        >>> {"target", "network"} <= {*option_names(Which)}
        True
    """
    found, types = [], get_type_hints(command)
    for field in dataclasses.fields(command):
        found += option_names(types[field.name]) if dataclasses.is_dataclass(types[field.name]) else [field.name]
    return found


def _options(command: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, value and default of each option, in the order of the help."""
    for field in dataclasses.fields(command):
        value = getattr(command, field.name)
        if dataclasses.is_dataclass(value):
            yield from _options(value)
        else:
            yield field.name, value, field.default
