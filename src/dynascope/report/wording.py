"""How numbers and names are written on a page."""

from __future__ import annotations

import json
from typing import Any

from dynascope.plot.numbers import number

__all__ = ["plain", "words"]


def plain(value: Any) -> str:
    """A parameter as text.

    Example:
        >>> plain(True), plain(1e-8), plain("relu"), plain([1, 2])
        ('yes', '10⁻⁸', 'relu', '[1, 2]')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or isinstance(value, int | float):
        return number(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def words(name: object) -> str:
    """The name of a variable as words."""
    return str(name).replace("_", " ")
