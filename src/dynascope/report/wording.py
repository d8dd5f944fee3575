"""How numbers and names are written on a page."""

from __future__ import annotations

import json
import math
from typing import Any

__all__ = ["number", "percent", "plain", "words"]

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None) -> str:
    """Four digits, in the notation of print; a dash for what is unknown.

    Example:
        >>> number(-0.00001234), number(12.5), number(1e-8), number(float("inf")), number(None)
        ('−1.234 × 10⁻⁵', '12.5', '10⁻⁸', '∞', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    mantissa, _, exponent = (str(value) if isinstance(value, int) else f"{value:.4g}").partition("e")
    if exponent:
        power = f"10{str(int(exponent)).translate(_RAISED)}"
        mantissa = power if mantissa == "1" else f"{mantissa} × {power}"
    return mantissa.replace("-", "−")


def percent(value: float | None) -> str:
    """A signed share of one; a dash for what is unknown.

    Example:
        >>> percent(0.0312), percent(-0.5), percent(None)
        ('+3.1 %', '−50.0 %', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return f"{100 * value:+.1f} %".replace("-", "−")


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
