"""What speaks against judging the time of a jump in a loss curve of one's own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynascope.comparison.steady_curve import WINDOW, SteadyCurve
from dynascope.record import StaircaseView
from dynascope.record import staircase_names as names
from dynascope.record.numbers import number
from dynascope.record.steps_seen import crossing_times

__all__ = ["FIRST", "TOO_ROUGH", "Doubts", "doubts_of"]

FIRST = 0.02  # error of the first loss, over the predicted one
# A larger error would let half the true learning rate pass, or twice it: (1 + e)/2 − 1 ≥ −e from e = 1/3 on.
TOO_ROUGH = 1 / 3
_APART = 3  # logged points between two jumps that show a plateau there
_HIDDEN = 8.0  # a drop that is fewer standard errors of the curve is not timed
_LATE = "steps of this learning rate explain why so late"


class Doubts(NamedTuple):
    """What a curve does not tell.

    Attributes:
        found: When it passes the middle of each jump; NaN where it never does, or begins below it.
        reasons: Why each jump is not judged; empty where it is.
        allowed: The relative error that the other times may have.
        added: What is to be said of the part of it that is the curve's.
    """

    found: np.ndarray
    reasons: list[str]
    allowed: float
    added: str


def doubts_of(
    staircase: StaircaseView, curve: SteadyCurve, allowed: float, *, late: float, chosen: bool, units: str
) -> Doubts:
    """Which of the predicted jumps a curve tells, and how sharply.

    Args:
        staircase: The prediction, in the units of the curve.
        curve: Without its noise.
        allowed: The relative error that theory allows its times.
        late: By which share of their time jumps come late, since steps are not infinitesimal.
        chosen: Whether the user chose what is allowed, so that it stays.
        units: Of the curve's clock.

    Example:
        >>> from dynascope.comparison.steady_curve import steady_curve
        >>> from dynascope.record import make_record
        >>> record = make_record(
        ...     {"jump_time": (["jump"], [80.0]), "loss_before": (["jump"], [1.0]), "loss_after": (["jump"], [0.2])},
        ...     {"jump": [1]},
        ... )
        >>> rare = steady_curve(np.array([0.0, 60.0, 120.0]), np.array([1.0, 0.9, 0.2]), rest=40.0)
        >>> doubts_of(StaircaseView(record), rare, 0.12, late=0.0, chosen=False, units="steps").reasons
        ['the curve was logged every 60 steps there, too rarely to tell the time']
    """
    drops = -np.diff(staircase.levels)
    found = crossing_times(curve.time, curve.loss, (staircase.levels[1:] + staircase.levels[:-1]) / 2)
    below = found == curve.time[0]
    seen = np.isfinite(found)
    after = np.searchsorted(curve.time, np.where(seen, found, curve.time[-1]))
    gaps = np.where(after > 0, curve.time[after] - curve.time[after - 1], np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Where many points follow a fall, a line between two of them tells when the middle is passed.
        share = np.minimum((curve.loss[after - 1] - curve.loss[after]) / drops, 1.0)
        blur = np.where(seen & (after > 0), share * gaps / found + WINDOW * curve.noisy, 0.0)
        delay = found / staircase.times - 1
        error = staircase.times / found - 1
    where = np.where(seen, found, staircase.times)
    noise = np.array([_HIDDEN * curve.error(each) for each in where])
    closeness = np.append(np.inf, np.diff(found))
    rarely = [f"the curve was logged every {number(gap, 3)} {units} there, too rarely to" for gap in gaps]
    vague = (
        f"from such a start theory tells times to {100 * allowed:.0f} % only, and twice the learning rate would pass"
    )
    against = [
        (staircase.slow, [names.SLOW] * len(drops)),
        (below, ["the curve begins below it"] * len(drops)),
        (blur > allowed / 2, [f"{each} tell the time" for each in rarely]),
        (closeness < _APART * gaps, [f"{each} tell neighbours apart" for each in rarely]),
        (np.full(len(drops), late > TOO_ROUGH), [_LATE] * len(drops)),
        (noise > drops, ["the curve is too noisy, or rounded too coarsely"] * len(drops)),
    ]
    reasons = _first_of(against, len(drops))
    added = 0.0
    if not chosen:
        added = float(np.max(blur, initial=0.0, where=np.array([not each for each in reasons], bool)))
        hopeless = np.full(len(drops), allowed > TOO_ROUGH)
        allowed += added
        between = (np.abs(error) > TOO_ROUGH) & (np.abs(error) <= allowed)
        against.append((hopeless | between, [vague] * len(drops)))
    against.append(((error < -allowed) & (delay <= allowed + late), [_LATE] * len(drops)))
    said = f"; and this curve tells them to {100 * added:.1g} %" if added >= 0.005 else ""
    return Doubts(np.where(below, np.nan, found), _first_of(against, len(drops)), float(allowed), said)


def _first_of(against: list[tuple[np.ndarray, list[str]]], jumps: int) -> list[str]:
    """The first reason that holds of each jump."""
    return [next((words[j] for holds, words in against if holds[j]), "") for j in range(jumps)]
