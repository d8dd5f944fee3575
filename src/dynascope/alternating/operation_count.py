"""Operation count of a run, a machine-independent measure of its cost."""

from __future__ import annotations

import math

__all__ = ["Effort"]

_EACH = 6.0  # operations of a gradient per weight and sample: two in the forward pass, four in the backward pass


class Effort:
    """Counts the floating-point operations of a run to within a factor of about two.

    Args:
        samples: Number of samples per gradient.
        most: Number of operations at which the run must end; None for no limit.

    Attributes:
        spent: Number of operations so far.

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
        """Add the cost of computing `slopes` gradients with respect to `weights` weights."""
        self.spent += _EACH * float(slopes) * weights * self.samples

    @property
    def exhausted(self) -> bool:
        """Whether the limit has been reached."""
        return self.spent >= self.most
