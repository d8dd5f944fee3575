"""Thresholds at which the phases of alternating gradient flow begin and end."""

from __future__ import annotations

import dataclasses

from dynascope.validation import checked
from dynascope.validation.bounded_scalars import NonNegativeFloat, PositiveFloat

__all__ = ["PhaseRules"]


@checked
@dataclasses.dataclass(frozen=True, kw_only=True)
class PhaseRules:
    """Thresholds at which alternating gradient flow switches between phases.

    Attributes:
        threshold: Norm at which a dormant neuron becomes active.
        tie: Number of e-folds. Neurons that reach the threshold within this interval and grow at nearly the same rate
            become active together, unless they compute the same function. Events within this interval after a jump are
            part of the jump.
        least_growth: Growth rates below this fraction of the largest initial growth rate count as zero.
        level_tolerance: A cost phase ends when t times the current rate of descent of the loss is less than this
            fraction of the initial loss. The run ends when the loss is below this fraction of the initial loss.

    Raises:
        InputError: If a number is out of range.

    Example:
        >>> PhaseRules(threshold=0.5).tie
        1.0
    """

    threshold: PositiveFloat = 1.0
    tie: NonNegativeFloat = 1.0
    least_growth: PositiveFloat = 1e-3
    level_tolerance: PositiveFloat = 1e-5
