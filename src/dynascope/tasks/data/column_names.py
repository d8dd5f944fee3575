"""Column names: lists for messages, and default names for unnamed columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from dynascope.validation import require

__all__ = ["counted", "is_unnamed", "listed", "require_different", "with_names"]

_LISTED = 12
_UNNAMED = re.compile(r"(Unnamed: \d+(\.\d+)?|\.\.\.\d+)?")  # default names of pandas and R's readr


def listed(names: Iterable[str]) -> str:
    """A list of the first dozen names in quotes.

    Example:
        >>> listed(["a", "b"])
        "'a', 'b'"
    """
    return _first(map(repr, names))


def counted(counts: Mapping[str, int]) -> str:
    """A list of the first dozen names in quotes, each with its count.

    Example:
        >>> counted({"a": 2, "b": 1})
        "'a' (2), 'b' (1)"
    """
    return _first(f"{name!r} ({count})" for name, count in counts.items())


def with_names(names: Sequence[str]) -> list[str]:
    """The column names, with the default names of pandas for unnamed columns.

    Example:
        >>> with_names(["", "Unnamed: 0", "age", ""])
        ['Unnamed: 0.1', 'Unnamed: 0', 'age', 'Unnamed: 3']
    """
    given = [f"Unnamed: {place}" for place in range(len(names))]
    return [name or usual + ".1" * (usual in names) for name, usual in zip(names, given, strict=True)]


def is_unnamed(name: str) -> bool:
    """Whether a column name is empty or a default name of pandas or R.

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
        remedy="give each column a different name",
    )


def _first(words: Iterable[str]) -> str:
    words = list(words)
    more = f" and {len(words) - _LISTED} more" if len(words) > _LISTED else ""
    return ", ".join(words[:_LISTED]) + more
