"""When the phases of alternating gradient flow begin and end."""

from __future__ import annotations

import dataclasses

from dynascope.validation import checked
from dynascope.validation.bounded_scalars import NonNegativeFloat, PositiveFloat

__all__ = ["PhaseRules"]


@checked
@dataclasses.dataclass(frozen=True, kw_only=True)
class PhaseRules:
    """Thresholds at which alternating gradient flow passes from one phase to the next.

    Attributes:
        threshold: Norm at which a dormant neuron becomes active.
        tie: Neurons that will reach the threshold within this many e-folds, and grow at the same rate, become active
            together unless they compute the same function; and what follows a jump within as many is part of it.
        least_growth: Growth rates below this share of the largest at the start count as zero.
        level_tolerance: A cost phase ends when the loss, at its present slope, would fall by less than this share of
            the initial loss in the time passed since the start; the run ends at this share of the initial loss.

    Raises:
        InputError: A number outside its domain.

    Example:
        >>> PhaseRules(threshold=0.5).tie
        1.0
    """

    threshold: PositiveFloat = 1.0
    tie: NonNegativeFloat = 1.0
    least_growth: PositiveFloat = 1e-3
    level_tolerance: PositiveFloat = 1e-5
