"""What a comparison concludes: the error of each quantity against its tolerance, and the verdict."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal

__all__ = ["Outcome", "Quantity", "Verdict"]

Outcome = Literal["holds", "does not hold", "undecided"]


@dataclasses.dataclass(frozen=True)
class Quantity:
    """How far a predicted quantity is from the observed one.

    Attributes:
        error: The largest error over what was compared; NaN where nothing could be compared, infinite where what is
            predicted was not observed.
        tolerance: The error below which theory and experiment agree.
        reason: Why this tolerance.

    Example:
        >>> Quantity(0.1, 0.1).agrees, Quantity(float("nan"), 0.1).agrees, Quantity(float("inf"), 0.1).agrees
        (True, True, False)
    """

    error: float
    tolerance: float
    reason: str = ""

    @property
    def judged(self) -> bool:
        """Whether anything could be compared."""
        return not math.isnan(self.error)

    @property
    def agrees(self) -> bool:
        """Whether the error is within the tolerance; nothing compared is not a disagreement."""
        return not self.judged or bool(self.error <= self.tolerance)

    def to_plain(self) -> dict[str, Any]:
        """The quantity as plain values. Errors that are not finite become None: NaN if `agrees`, else infinity."""
        error = float(self.error)
        told = {"error": error if math.isfinite(error) else None, "tolerance": self.tolerance, "agrees": self.agrees}
        return {**told, "reason": self.reason}

    @classmethod
    def from_plain(cls, stored: Mapping[str, Any]) -> Quantity:
        """The quantity that `to_plain` stored."""
        error = stored["error"]
        if error is None:
            error = math.nan if stored.get("agrees", True) else math.inf
        return cls(error, stored["tolerance"], str(stored.get("reason", "")))


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What came out of a comparison.

    Attributes:
        outcome: "agree", "disagree" or "undecided".
        sentence: The same in a sentence, with the numbers behind it.
        share_of_fall: How much of the fall of the loss was judged; None where that is unknown.

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
