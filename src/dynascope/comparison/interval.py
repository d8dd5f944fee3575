"""Student's interval of a mean over few runs."""

from __future__ import annotations

import math

from scipy import special

from dynascope.arguments import require

__all__ = ["student_half"]


def student_half(variance: float, runs: int, confidence: float = 0.95) -> float:
    """Half of the interval that covers the mean with this probability, where runs are normally distributed.

    Args:
        variance: Variance of one run, estimated from all (with n − 1).
        runs: Their number n, at least two.
        confidence: The probability, above 0 and below 1.

    Raises:
        InputError: A confidence outside (0, 1).

    Example:
        >>> round(student_half(1.0, 4), 2)  # two standard errors of 0.5 each would be 1
        1.59
    """
    require(
        0 < confidence < 1,
        f"confidence is {confidence}",
        argument="confidence",
        value=confidence,
        remedy="choose a probability above 0 and below 1, such as 0.95",
    )
    return float(special.stdtrit(runs - 1, (1 + confidence) / 2)) * math.sqrt(variance / runs)
