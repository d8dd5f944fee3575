"""Sizes that cannot fit are refused with the bytes they would need, before these are asked for."""

from __future__ import annotations

import os
from typing import Any

from dynascope.arguments.numbers import require

__all__ = ["require_memory"]

_SHARE = 4  # of the memory, arrays may take one part: what is computed from them takes as much again, and again
_UNKNOWN = 2**34  # bytes of a machine that does not tell


def require_memory(numbers: int, *, each: int = 8, **sizes: Any) -> None:
    """Raise `InputError` if arrays of so many numbers take more than a quarter of the memory of the machine.

    Args:
        numbers: How many numbers they hold.
        each: Bytes of one.
        **sizes: The arguments from which that number follows, by name; the error names the largest.

    Example:
        >>> require_memory(3 * 100, width=100)
        >>> require_memory(3 * 10**15, inputs=3, width=10**15)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: width is 1000000000000000, for which arrays of 2.4e+07 GB would be needed: ...
    """
    needed, limit = each * int(numbers), _memory() // _SHARE
    name = max(sizes, key=lambda argument: sizes[argument])
    require(
        needed <= limit,
        f"{name} is {sizes[name]}, for which arrays of {needed / 1e9:.2g} GB would be needed",
        argument=name,
        value=sizes[name],
        remedy=f"choose a smaller one: a quarter of the memory of this machine is {limit / 1e9:.2g} GB",
    )


def _memory() -> int:
    """The bytes of memory of the machine."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows
        return _UNKNOWN
