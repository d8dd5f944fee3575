"""Format numbers for sentences, axes and pages."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["counted", "number", "percent", "rounded", "signed_percent"]

_LARGE = 1e6
_PLAIN = 1e5  # below this, sentences use no power of ten
_NO_BREAK = "\N{NO-BREAK SPACE}"
_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None, digits: int = 4) -> str:
    """Format a number with few digits in print notation; a dash if it is unknown.

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
    # Print thousands as integers rather than in scientific notation.
    notation = ".0f" if 10**digits <= abs(value) < _LARGE else f".{digits}g"
    mantissa, _, exponent = (str(value) if isinstance(value, int) else f"{value:{notation}}").partition("e")
    if exponent:
        power = f"10{str(int(exponent)).translate(_RAISED)}"
        mantissa = power if mantissa == "1" else f"{mantissa} × {power}"
    return mantissa.replace("-", "−")


def rounded(value: Any, digits: int = 3) -> str:
    """Format a number for a sentence: a few significant digits, without line breaks.

    Args:
        value: A number, or an array of one number.
        digits: The number of significant digits.

    Example:
        >>> rounded(0.12345), rounded(29474.4), rounded(-1.5e-7).replace("\N{NO-BREAK SPACE}", " ")
        ('0.123', '29500', '−1.5 × 10⁻⁷')
    """
    value = _scalar(value)
    if isinstance(value, float) and math.isfinite(value):
        value = float(f"{value:.{digits}g}")  # first, because 99.9 becomes 100
        value = int(value) if 10**digits <= abs(value) < _PLAIN else value
    return number(value, digits).replace(" ", _NO_BREAK)


def percent(value: Any, digits: int = 3) -> str:
    """Format a fraction as a percentage for a sentence.

    Args:
        value: A number, or an array of one number.
        digits: The number of significant digits.

    Example:
        >>> percent(0.98).replace("\N{NO-BREAK SPACE}", " ")
        '98 %'
    """
    share = round(100 * _scalar(value), digits) + 0.0  # zero has no sign
    return f"{rounded(share, digits)}{_NO_BREAK}%"


def signed_percent(value: float | None) -> str:
    """Format a signed fraction as a percentage; a dash if it is unknown.

    Example:
        >>> signed_percent(0.0312), signed_percent(-0.5), signed_percent(1e-5), signed_percent(None)
        ('+3.1 %', '−50.0 %', '0.0 %', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    text = f"{100 * value:+.1f} %".replace("-", "−")
    return text[1:] if text[1:] == "0.0 %" else text


def counted(size: int) -> str:
    """Format a count, spelled out up to twelve.

    Example:
        >>> counted(0), counted(12), counted(13)
        ('no', 'twelve', '13')
    """
    return _COUNTS[size] if size < len(_COUNTS) else str(size)


def _scalar(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
