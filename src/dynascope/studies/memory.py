"""Splits studies that are trained together, so that their arrays fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["MEMORY", "parts_in_memory"]

MEMORY = 2**30  # bytes of the arrays of studies that are trained together
_Item = TypeVar("_Item")


def parts_in_memory(items: Sequence[_Item], needed: Callable[[Sequence[_Item]], float]) -> list[Sequence[_Item]]:
    """Halve a sequence until every part needs at most `MEMORY` bytes, or has one item.

    Args:
        items: The items.
        needed: The number of bytes that several items need.

    Example:
        >>> parts_in_memory([1, 2, 3, 4], lambda part: 2**28 * len(part) ** 2)
        [[1, 2], [3, 4]]
    """
    if len(items) == 1 or needed(items) <= MEMORY:
        return [items]
    half = len(items) // 2
    return [*parts_in_memory(items[:half], needed), *parts_in_memory(items[half:], needed)]
