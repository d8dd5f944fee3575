"""What is said of a loss curve of one's own that theory does not cover, or that was hardly meant."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr
from jaxtyping import Float

from dynascope.comparison.doubts import FIRST
from dynascope.comparison.loss_convention import LOSSES, ratio_names
from dynascope.comparison.steady_curve import SteadyCurve
from dynascope.record import StaircaseView
from dynascope.record import staircase_names as names
from dynascope.record.gathering import gathered_reasons, numbered
from dynascope.record.numbers import number

__all__ = ["fastest_growth", "told_of_curve", "told_of_jumps", "told_of_times"]

_ALIKE = 1.3  # ratio of the largest to the smallest among ratios that are about the same
_MISTAKEN = 1.5  # a smaller factor between learning rates is hardly a mistake
_LATE = 0.05  # share of their time by which jumps come late under large steps, from which on it is told


def told_of_jumps(reasons: list[str]) -> Iterator[str]:
    """One sentence for each kind of reason, with the jumps that it holds of."""
    for jumps, reason in gathered_reasons(list(enumerate(reasons, start=1))):
        subject = f"Jump {jumps[0]} is" if len(jumps) == 1 else f"Jumps {numbered(jumps)} are"
        yield f"{subject} not judged: {reason}."


def told_of_curve(
    observed: xr.Dataset, predicted: xr.Dataset, curve: SteadyCurve, first_error: float, late: float
) -> Iterator[str]:
    """What is odd about a curve: another convention or other data, noise, steps that are too large."""
    staircase, loss = StaircaseView(predicted), observed.attrs["loss_convention"]
    if first_error > FIRST:
        ratio = float(curve.loss[0] / staircase.levels[0])
        others = ratio_names(ratio, loss, predicted.attrs, FIRST)
        told = f"The first loss is {number(ratio, 3)} times that predicted"
        if others:
            is_it = " or ".join(f"loss={each!r} ({LOSSES[each].formula})" for each in others)
            yield f"{told}: is it {is_it}, and not loss={loss!r}?"
        else:
            yield f"{told}: is that for the arrays trained on, centred and scaled alike, and is the start small?"
    if curve.noisy:
        yield (
            f"The loss rises by up to {number(100 * curve.rise, 2)} % of its start, as from minibatches or a large "
            "learning rate. Its best falling fit is judged, and further plateaus are not looked for. Theory is about "
            "small steps on all samples."
        )
    if late > _LATE:
        plain = not observed.attrs.get("delay")
        why = f": weights grow by {200 * late:.0f} % in one step, so" if plain else " for this momentum, so that"
        yield (
            f"The learning rate is large{why} jumps come about {100 * late:.0f} % later than under gradient flow. "
            "Train with a smaller one to tell more."
        )


def told_of_times(ratios: Float[np.ndarray, " judged"], allowed: float) -> Iterator[str]:
    """What all jumps together say of the learning rate, if they come as much too early, or too late, as each other.

    Example:
        >>> len(list(told_of_times(np.array([2.0, 2.1]), 0.12))), len(list(told_of_times(np.array([2.0, 1.0]), 0.12)))
        (1, 0)
    """
    ratios = ratios[np.isfinite(ratios)]
    if not len(ratios) or np.max(ratios) > _ALIKE * np.min(ratios):
        return
    ratio = float(np.median(ratios))
    if abs(ratio - 1) > allowed and max(ratio, 1 / ratio) > _MISTAKEN:
        factor = number(ratio, 3)
        yield (
            f"Predicted times are about {factor} times those seen: was the learning rate {factor} times what was said "
            "here, or the optimiser another than plain gradient descent?"
        )


def fastest_growth(staircase: StaircaseView) -> float:
    """The fastest rate at which small weights grow, where they grow exponentially."""
    record = staircase.record
    if not staircase.exponential or not len(staircase.times):
        return 0.0
    rates = record[names.GROWTH_RATE].to_numpy() if names.GROWTH_RATE in record else 1 / staircase.accelerated_times
    return float(np.nanmax(np.where(np.isfinite(rates), rates, np.nan), initial=0.0))
