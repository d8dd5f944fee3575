"""What a run has computed so far, which is the same on every machine, however busy that is."""

from __future__ import annotations

import math

__all__ = ["Effort"]

_EACH = 6.0  # operations of a slope for each weight and sample: two there, and twice as many back


class Effort:
    """Floating-point operations of a run, to within a factor of two or so.

    Args:
        samples: How many a slope is averaged over.
        most: Operations after which the run is to end; None for no limit.

    Attributes:
        spent: Operations so far.

    Example:
        >>> effort = Effort(100, most=1e4)
        >>> effort.count(2, weights=5)
        >>> effort.spent, effort.exhausted
        (6000.0, False)
    """

    def __init__(self, samples: int, most: float | None):
        self.samples, self.most = samples, math.inf if most is None else most
        self.spent = 0.0

    def count(self, slopes: float, *, weights: int) -> None:
        """Count that so many slopes were taken, in the direction of so many weights."""
        self.spent += _EACH * float(slopes) * weights * self.samples

    @property
    def exhausted(self) -> bool:
        """Whether the run is to end."""
        return self.spent >= self.most
