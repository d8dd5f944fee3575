"""Warnings about losses that contradict a fitted law."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

__all__ = ["CALLER", "UNLIKELY", "MisfitWarning", "OutlierWarning", "misfit_sentence", "outlier_sentence"]

CALLER = 3  # stack frames from a public fit to its caller, including the argument checks
UNLIKELY = 0.01  # p value below which the law does not describe the losses
_MOST = 20  # largest number of runs that a warning lists


class OutlierWarning(UserWarning):
    """Some losses contradict the law fitted to the others. `fit_joint` excludes these runs; `fit` keeps the points."""


class MisfitWarning(UserWarning):
    """The law does not describe the losses, so its confidence and prediction intervals are too narrow."""


def outlier_sentence(
    noun: str,
    outliers: Int[np.ndarray, " outliers"],
    excess: Float[np.ndarray, " outliers"],
    shape: tuple[int, ...],
    exponents: Sequence[tuple[float, float]],
    *,
    left_out: bool,
) -> str:
    """Write the warning about outliers: their indices and deviations, and the exponents with and without them.

    Args:
        noun: "run" or "point".
        outliers: Indices of the outliers in the flattened losses.
        excess: Relative deviation of each outlier from the law.
        shape: Shape of the given losses; for a table of losses, the warning lists multi-dimensional indices.
        exponents: Pairs of an exponent fitted to all losses and the same exponent fitted without the outliers.
        left_out: Whether the fit excludes the outliers.
    """
    count, one = len(outliers), len(outliers) == 1
    places = np.stack(np.unravel_index(outliers, shape), axis=-1).tolist()[:_MOST]
    named = ", ".join(str(place[0]) if len(place) == 1 else str(tuple(place)) for place in places)
    more = f" and {count - _MOST} more" if count > _MOST else ""
    low, high = (f"{100 * end:+.3g}%" for end in (excess.min(), excess.max()))
    off = f"its loss is off by {low}" if one else f"their losses are off by {low} to {high}"
    with_all, without = (" and ".join(f"{each:.3g}" for each in side) for side in zip(*exponents, strict=True))
    if left_out:
        fate = "excluded"
        effect = f"with all {noun}s, the exponents would be {with_all} instead of {without}"
    else:
        fate = "part of the fit"
        effect = f"without {'it' if one else 'them'}, the exponent would be {without} instead of {with_all}"
    several = noun + "s" * (not one)
    return (
        f"{count} of {math.prod(shape)} {noun}s contradict{'s' * one} the law fitted to the others and "
        f"{'is' if one else 'are'} {fate}: {several} {named}{more} ({off}); {effect}; "
        f"check {'this' if one else 'these'} {several}"
    )


def misfit_sentence(p_value: float, evidence: str) -> str:
    """Write the warning that the law does not describe the losses, with the evidence and the consequence."""
    return (
        f"the law does not describe the losses: {evidence} (p = {p_value:.1g}), so its intervals are too narrow "
        "and it must not be extrapolated; fit a narrower range, and check the law on larger runs"
    )
