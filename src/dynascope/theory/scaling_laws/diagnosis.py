"""The warnings of a fitted law that some losses, or all of them, contradict."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

__all__ = ["CALLER", "UNLIKELY", "MisfitWarning", "OutlierWarning", "misfit_sentence", "outlier_sentence"]

CALLER = 3  # frames from a public fit up to its caller, past the checks of arguments
UNLIKELY = 0.01  # p value of the curvature below which the law does not describe the losses
_MOST = 20  # runs that a warning names


class OutlierWarning(UserWarning):
    """A few losses contradict the law of the others: `fit_joint` leaves these runs out, `fit` keeps these points."""


class MisfitWarning(UserWarning):
    """The law does not describe the losses: its intervals are too narrow and do not extrapolate."""


def outlier_sentence(
    noun: str,
    outliers: Int[np.ndarray, " outliers"],
    excess: Float[np.ndarray, " outliers"],
    shape: tuple[int, ...],
    exponents: Sequence[tuple[float, float]],
    *,
    left_out: bool,
) -> str:
    """Name the losses that contradict the others, how far off they are, and the exponents with and without them.

    Args:
        noun: "run" or "point".
        outliers: Positions of these losses among all.
        excess: By which fraction each is above the law.
        shape: That of the losses as given: in a table a run is named by its indices.
        exponents: Each fitted to all losses, and to the others.
        left_out: Whether the fit is without these losses.
    """
    count, one = len(outliers), len(outliers) == 1
    places = np.stack(np.unravel_index(outliers, shape), axis=-1).tolist()[:_MOST]
    named = ", ".join(str(place[0]) if len(place) == 1 else str(tuple(place)) for place in places)
    more = f" and {count - _MOST} more" if count > _MOST else ""
    low, high = (f"{100 * end:+.3g}%" for end in (excess.min(), excess.max()))
    off = f"its loss is off by {low}" if one else f"their losses are off by {low} to {high}"
    with_all, without = (" and ".join(f"{each:.3g}" for each in side) for side in zip(*exponents, strict=True))
    if left_out:
        fate = "left out"
        effect = f"with all {noun}s the exponents would be {with_all} and not {without}"
    else:
        fate = "part of the fit"
        effect = f"without {'it' if one else 'them'} the exponent would be {without} and not {with_all}"
    several = noun + "s" * (not one)
    return (
        f"{count} of {math.prod(shape)} {noun}s contradict{'s' * one} the law of the others and "
        f"{'is' if one else 'are'} {fate}: {several} {named}{more} ({off}); {effect}; "
        f"check {'this' if one else 'these'} {several}"
    )


def misfit_sentence(p_value: float, evidence: str) -> str:
    """State that the law does not describe the losses, and what this means for the intervals."""
    return (
        f"the law does not describe the losses: {evidence} (p = {p_value:.1g}), so that "
        "intervals are too narrow and do not extrapolate; fit a narrower range, and check the law on larger runs"
    )
