"""The outcome of a comparison: the error of each quantity, its tolerance, and the verdict."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal

__all__ = ["Outcome", "Quantity", "Verdict"]

Outcome = Literal["holds", "does not hold", "undecided"]


@dataclasses.dataclass(frozen=True)
class Quantity:
    """The error of a predicted quantity.

    Attributes:
        error: The largest error; NaN if nothing could be compared, infinite if the predicted event was not observed.
        tolerance: The largest error at which theory and experiment agree.
        reason: The reason for the tolerance.

    Example:
        >>> Quantity(0.1, 0.1).agrees, Quantity(float("nan"), 0.1).agrees, Quantity(float("inf"), 0.1).agrees
        (True, True, False)
    """

    error: float
    tolerance: float
    reason: str = ""

    @property
    def judged(self) -> bool:
        """Whether the quantity could be compared."""
        return not math.isnan(self.error)

    @property
    def agrees(self) -> bool:
        """Whether the error is within the tolerance; true if the quantity could not be compared."""
        return not self.judged or bool(self.error <= self.tolerance)

    def to_plain(self) -> dict[str, Any]:
        """Convert to plain values; errors of NaN and infinity become None, and `agrees` distinguishes them."""
        error = float(self.error)
        plain = {"error": error if math.isfinite(error) else None, "tolerance": self.tolerance, "agrees": self.agrees}
        return {**plain, "reason": self.reason}

    @classmethod
    def from_plain(cls, stored: Mapping[str, Any]) -> Quantity:
        """Restore a quantity from the result of `to_plain`."""
        error = stored["error"]
        if error is None:
            error = math.nan if stored.get("agrees", True) else math.inf
        return cls(error, stored["tolerance"], str(stored.get("reason", "")))


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The verdict of a comparison.

    Attributes:
        outcome: "agree", "disagree" or "undecided".
        sentence: The outcome as a sentence with the decisive numbers.
        share_of_fall: The share of the decrease in the loss that was scored; None if unknown.

    Example:
        >>> import numpy as np
        >>> from dynascope import compare, observe, predict
        >>> task = np.eye(2) * 2**0.5, np.diag([4.0, 1.0]) * 2**0.5
        >>> compare(observe(task, "linear"), predict(task, "linear")).verdict.outcome
        'agree'
    """

    outcome: Literal["agree", "disagree", "undecided"]
    sentence: str
    share_of_fall: float | None = None
