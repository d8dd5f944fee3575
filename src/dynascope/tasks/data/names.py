"""Names of columns in messages, and columns without a name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dynascope.arguments import require

__all__ = ["is_unnamed", "listed", "require_different", "unnamed"]

_LISTED = 12
_UNNAMED = re.compile(r"(Unnamed: \d+|\.\.\.\d+)?")  # as pandas and R's readr call them


def listed(names: Iterable[str]) -> str:
    """The names in quotes, the first dozen of them.

    Example:
        >>> listed(["a", "b"])
        "'a', 'b'"
    """
    names = list(names)
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(map(repr, names[:_LISTED])) + more


def unnamed(place: int) -> str:
    """The name that pandas gives to a column without one, by its place from 0.

    Example:
        >>> unnamed(0)
        'Unnamed: 0'
    """
    return f"Unnamed: {place}"


def is_unnamed(name: str) -> bool:
    """Whether a column has no name, or the one that pandas or R gives to such a column.

    Example:
        >>> is_unnamed(""), is_unnamed("Unnamed: 0"), is_unnamed("age")
        (True, True, False)
    """
    return _UNNAMED.fullmatch(name) is not None


def require_different(names: Sequence[str], source: str, *, argument: str) -> None:
    """Raise `InputError` if two columns have the same name."""
    repeated = sorted({name for name in names if names.count(name) > 1})
    require(
        not repeated,
        f"{source} has several columns named {listed(repeated)}",
        argument=argument,
        value=repeated,
        remedy="give each its own name",
    )
