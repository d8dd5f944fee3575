"""How numbers are written for people, in captions, on axes and on pages."""

from __future__ import annotations

import math

__all__ = ["counted", "number", "percent"]

_LARGE = 1e6
_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None, digits: int = 4) -> str:
    """A few digits, in the notation of print; a dash for what is unknown.

    Example:
        >>> number(-0.00001234), number(12.5), number(1e-8), number(float("inf")), number(None)
        ('−1.234 × 10⁻⁵', '12.5', '10⁻⁸', '∞', '–')
        >>> number(2947.4, 3), number(2947449.0, 3)
        ('2947', '2.95 × 10⁶')
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    # A power of ten for a few thousand reads worse than the thousands.
    notation = ".0f" if 10**digits <= abs(value) < _LARGE else f".{digits}g"
    mantissa, _, exponent = (str(value) if isinstance(value, int) else f"{value:{notation}}").partition("e")
    if exponent:
        power = f"10{str(int(exponent)).translate(_RAISED)}"
        mantissa = power if mantissa == "1" else f"{mantissa} × {power}"
    return mantissa.replace("-", "−")


def percent(value: float | None) -> str:
    """A signed share of one; a dash for what is unknown.

    Example:
        >>> percent(0.0312), percent(-0.5), percent(1e-5), percent(None)
        ('+3.1 %', '−50.0 %', '0.0 %', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    told = f"{100 * value:+.1f} %".replace("-", "−")
    return told[1:] if told[1:] == "0.0 %" else told


def counted(size: int) -> str:
    """A count, spelled out up to twelve.

    Example:
        >>> counted(0), counted(12), counted(13)
        ('no', 'twelve', '13')
    """
    return _COUNTS[size] if size < len(_COUNTS) else str(size)
