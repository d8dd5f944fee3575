"""Formatting of numbers, names and measured values on a page."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from markupsafe import Markup, escape

from dynascope.results import Claim
from dynascope.results.numbers import number

__all__ = ["measured", "parameter_text", "printed", "words"]

_PROGRAM_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?[eE][+-]?\d+(?!\w)")
_POWER = re.compile(r"(?<=\w)\^([-−]?\([^()<&]*\)|\|[^|<&]*\||[-−]?[\w.]*\w)")


def measured(claim: Claim) -> str:
    """Format the measured value of a claim, with its interval unless it is known exactly.

    Example:
        >>> measured(Claim("A", "It is small.", 1.0, most=2.0)), measured(Claim("B", "It is small.", 1, 0, 3, most=2))
        ('1', '1 (0 to 3)')
    """
    # Keep each number on one line.
    ends = claim.value, *claim.interval
    value, low, high = (number(each, claim.digits).replace(" ", "\N{NO-BREAK SPACE}") for each in ends)
    known = any(map(math.isfinite, claim.interval)) and claim.interval[0] < claim.interval[1]
    value = f"{value} {claim.units}".rstrip()
    return f"{value} ({low} to {high})" if known else value


def parameter_text(value: Any) -> str:
    """Format a parameter as text.

    Example:
        >>> parameter_text(True), parameter_text(1e-8), parameter_text("relu"), parameter_text([1, 2])
        ('yes', '10⁻⁸', 'relu', '1, 2')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or isinstance(value, int | float):
        return number(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(parameter_text, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def printed(text: str) -> Markup:
    """Convert numbers and powers in a text from program notation to print notation.

    Example:
        >>> str(printed("`loss` to 1e-9, and 2.5e+07 < k^-1.6, k^(−2α), k^−(α+1) or ρ^|i−j|"))
        'loss to 10⁻⁹, and 2.5 × 10⁷ &lt; k<sup>−1.6</sup>, k<sup>−2α</sup>, k<sup>−(α+1)</sup> or ρ<sup>|i−j|</sup>'
    """
    numbers = _PROGRAM_NUMBER.sub(lambda found: number(float(found[0])), text.replace("`", ""))
    return Markup(_POWER.sub(_raised, str(escape(numbers))))


def _raised(power: re.Match[str]) -> str:
    inside = power[1][1:-1] if power[1].startswith("(") else power[1]
    return f"<sup>{inside.replace('-', '−')}</sup>"


def words(name: object) -> str:
    """Format the name of a variable as words."""
    return str(name).replace("_", " ")
