"""The warnings of a joint law that some runs, or all of them, contradict."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float, Int

__all__ = ["UNLIKELY", "MisfitWarning", "OutlierWarning", "misfit_sentence", "outlier_sentence"]

UNLIKELY = 0.01  # p value of the curvature below which the law does not describe the losses
_MOST = 20  # runs that a warning names


class OutlierWarning(UserWarning):
    """A few runs contradict the law of the others and are left out of the fit.

    Args:
        sentence: Names these runs.
    """

    def __init__(self, sentence: str):
        super().__init__(sentence)


class MisfitWarning(UserWarning):
    """The law does not describe the losses: its intervals are too narrow and do not extrapolate.

    Args:
        sentence: Gives the evidence.
    """

    def __init__(self, sentence: str):
        super().__init__(sentence)


def outlier_sentence(
    outliers: Int[np.ndarray, " outliers"],
    excess: Float[np.ndarray, " outliers"],
    shape: tuple[int, ...],
    with_all: tuple[float, float],
    without: tuple[float, float],
) -> str:
    """Name the runs that were left out, how far off they are, and the exponents with and without them.

    Args:
        outliers: Positions of these runs among all.
        excess: By which fraction the loss of each is above that of the law.
        shape: That of the losses as given: in a table a run is named by its indices.
        with_all: Both exponents, fitted to all runs.
        without: Both exponents, fitted to the others.
    """
    count = len(outliers)
    places = np.stack(np.unravel_index(outliers, shape), axis=-1).tolist()[:_MOST]
    named = ", ".join(str(place[0]) if len(place) == 1 else str(tuple(place)) for place in places)
    more = f" and {count - _MOST} more" if count > _MOST else ""
    low, high = (f"{100 * end:+.3g}%" for end in (excess.min(), excess.max()))
    off = f"its loss is off by {low}" if count == 1 else f"their losses are off by {low} to {high}"
    return (
        f"{count} of {math.prod(shape)} runs contradict{'s' * (count == 1)} the law of the others and "
        f"{'is' if count == 1 else 'are'} left out: run{'s' * (count > 1)} {named}{more} ({off}); with all runs the "
        f"exponents would be {with_all[0]:.3g} and {with_all[1]:.3g} and not {without[0]:.3g} and {without[1]:.3g}; "
        f"check {'this run' if count == 1 else 'these runs'}"
    )


def misfit_sentence(p_value: float) -> str:
    """State that the law does not describe the losses, and what this means for the intervals."""
    return (
        f"the law does not describe the losses: it leaves curvature in ln N and ln D (p = {p_value:.1g}), so that "
        "intervals are too narrow and do not extrapolate; fit a narrower range, and check the law on larger runs"
    )
