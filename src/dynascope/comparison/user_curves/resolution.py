"""Find which predicted jumps a loss curve resolves, given its noise, rounding and logging interval."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy
from jaxtyping import Float

from dynascope.results import StaircaseView
from dynascope.results import staircase_names as names
from dynascope.results.numbers import number
from dynascope.results.steps_seen import crossing_times

__all__ = ["TOO_ROUGH", "MonotoneFit", "Resolution", "monotone_fit", "resolve_jumps"]

# A larger tolerance e would accept half or twice the true learning rate: (1 + e)/2 − 1 ≥ −e for e ≥ 1/3.
TOO_ROUGH = 1 / 3
_WINDOW = 0.03  # fraction of the time on either side over which a noisy curve is averaged; below the tolerance of times
_DECIMALS = range(7)
_FEW = 20  # points for an estimate of the noise
_RISES = 1e-5  # of the first loss; smaller rises are ignored, since single precision rounds by 1e-7
_APART = 3  # logged points between two jumps that resolve a plateau
_HIDDEN = 8.0  # minimum drop, in standard errors of the curve, for a jump to be timed
_LATE = "the large learning rate explains its delay"


class MonotoneFit(NamedTuple):
    """A denoised loss curve; gradient descent in small steps only decreases the loss, so any rise is noise.

    Attributes:
        time: The logged times, shape (n,).
        loss: The logged loss; if it is noisy, its best decreasing fit.
        rise: The largest rise of the loss, relative to the first loss.
        spread: Standard deviation of the logged loss around the fit, up to each time; zero for a curve without noise.
        averaged: Number of points over which the fit is averaged at each time.
        unit: The power of ten to which the losses were rounded, as in a printed table; zero if they were not rounded.
    """

    time: Float[np.ndarray, " n"]
    loss: Float[np.ndarray, " n"]
    rise: float
    spread: Float[np.ndarray, " n"]
    averaged: Float[np.ndarray, " n"]
    unit: float

    @property
    def noisy(self) -> bool:
        """Whether the loss rises by more than rounding explains."""
        return self.rise > _RISES

    def error(self, time: float) -> float:
        """Return the standard error of the fit at a time, including rounding."""
        place = min(int(np.searchsorted(self.time, time)), len(self.time) - 1)
        return float(max(self.spread[place] / np.sqrt(self.averaged[place]), self.unit / 4))


def monotone_fit(time: Float[np.ndarray, " n"], loss: Float[np.ndarray, " n"], rest: float) -> MonotoneFit:
    """Return the best decreasing fit of a noisy curve, averaged over short times; curves without noise are unchanged.

    Args:
        time: The logged times, shape (n,).
        loss: The logged loss, shape (n,).
        rest: The time before which theory predicts a constant loss; all earlier losses are averaged.

    Example:
        >>> time, noise = np.arange(4000.0), np.random.default_rng(0).normal(size=4000)
        >>> fit = monotone_fit(time, np.where(time < 2000, 1.0, 0.5) + 0.03 * noise, rest=1000.0)
        >>> fit.noisy, fit.loss[[0, -1]].round(2)
        (True, array([1. , 0.5]))
    """
    rise = float(np.max(loss - np.minimum.accumulate(loss)) / loss[0])
    unit = next((10.0**-k for k in _DECIMALS if np.allclose(np.round(loss, k), loss, rtol=1e-12, atol=0)), 0.0)
    unchanged = MonotoneFit(time, loss, rise, np.zeros(len(loss)), np.ones(len(loss)), unit)
    if not unchanged.noisy:
        return unchanged
    first = np.searchsorted(time, np.where(time <= rest, 0.0, time * (1 - _WINDOW)), "left")
    last = np.searchsorted(time, np.where(time <= rest, rest, time * (1 + _WINDOW)), "right")
    last = np.maximum(last, first + 1)
    sums = np.append(0.0, np.cumsum(loss))
    fit = scipy.optimize.isotonic_regression((sums[last] - sums[first]) / (last - first), increasing=False).x
    squares = np.append(0.0, np.cumsum((loss - fit) ** 2))
    # Only over the averaged points and the second half of the time, since minibatch noise decreases with the loss.
    end = np.where(time <= rest, last, np.arange(1, len(time) + 1))
    begin = np.where(time <= rest, 0, np.maximum(np.minimum(np.searchsorted(time, time / 2), end - _FEW), 0))
    spread = np.sqrt((squares[end] - squares[begin]) / (end - begin))
    return MonotoneFit(time, fit, rise, spread, (last - first).astype(float), unit)


class Resolution(NamedTuple):
    """The jumps that a curve resolves.

    Attributes:
        found: Times at which the curve passes the midpoint of each jump; NaN if the curve starts below it or never
            passes it.
        reasons: The reason why each jump is not scored; empty if it is scored.
        allowed: The relative tolerance of the times of scored jumps.
        added: The part of the tolerance that is due to the curve, formatted as the end of a sentence.
    """

    found: np.ndarray
    reasons: list[str]
    allowed: float
    added: str


def resolve_jumps(
    staircase: StaircaseView, curve: MonotoneFit, allowed: float, *, late: float, chosen: bool, units: str
) -> Resolution:
    """Find which of the predicted jumps a curve resolves, and the tolerance of their times.

    Args:
        staircase: The prediction, in the units of the curve.
        curve: The denoised curve.
        allowed: The relative tolerance of times according to theory.
        late: The relative delay of jumps due to finite steps.
        chosen: Whether the user chose the tolerance, which is then not changed.
        units: Units of the curve's time axis.

    Example:
        >>> from dynascope.results import make_record
        >>> record = make_record(
        ...     {"jump_time": (["jump"], [80.0]), "loss_before": (["jump"], [1.0]), "loss_after": (["jump"], [0.2])},
        ...     {"jump": [1]},
        ... )
        >>> rare = monotone_fit(np.array([0.0, 60.0, 120.0]), np.array([1.0, 0.9, 0.2]), rest=40.0)
        >>> resolve_jumps(StaircaseView(record), rare, 0.12, late=0.0, chosen=False, units="steps").reasons
        ['the curve was logged every 60 steps there, too rarely to determine the time']
    """
    drops = -np.diff(staircase.levels)
    found = crossing_times(curve.time, curve.loss, (staircase.levels[1:] + staircase.levels[:-1]) / 2)
    below = found == curve.time[0]
    seen = np.isfinite(found)
    after = np.searchsorted(curve.time, np.where(seen, found, curve.time[-1]))
    gaps = np.where(after > 0, curve.time[after] - curve.time[after - 1], np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        # The crossing of the midpoint is interpolated linearly between two points.
        share = np.minimum((curve.loss[after - 1] - curve.loss[after]) / drops, 1.0)
        blur = np.where(seen & (after > 0), share * gaps / found + _WINDOW * curve.noisy, 0.0)
        delay = found / staircase.times - 1
        error = staircase.times / found - 1
    noise = np.array([_HIDDEN * curve.error(each) for each in np.where(seen, found, staircase.times)])
    closeness = np.append(np.inf, np.diff(found))
    rarely = [f"the curve was logged every {number(gap, 3)} {units} there, too rarely to" for gap in gaps]
    vague = (
        f"at this scale, theory predicts times only to within {100 * allowed:.0f} %, too roughly to detect that the "
        "learning rate is wrong by a factor of two"
    )
    against = [
        (staircase.slow, [names.SLOW] * len(drops)),
        (below, ["the curve starts below the level before this jump"] * len(drops)),
        (blur > allowed / 2, [f"{each} determine the time" for each in rarely]),
        (closeness < _APART * gaps, [f"{each} separate neighbouring jumps" for each in rarely]),
        (np.full(len(drops), late > TOO_ROUGH), [_LATE] * len(drops)),
        (noise > drops, ["the curve is too noisy, or rounded too coarsely"] * len(drops)),
    ]
    added = 0.0
    if not chosen:
        scored = np.array([not each for each in _first_reasons(against, len(drops))], bool)
        added = float(np.max(blur, initial=0.0, where=scored))
        hopeless = np.full(len(drops), allowed > TOO_ROUGH)
        allowed += added
        between = (np.abs(error) > TOO_ROUGH) & (np.abs(error) <= allowed)
        against.append((hopeless | between, [vague] * len(drops)))
    against.append(((error < -allowed) & (delay <= allowed + late), [_LATE] * len(drops)))
    resolution = f"; plus {100 * added:.1g} % for the resolution of this curve" if added >= 0.005 else ""
    return Resolution(np.where(below, np.nan, found), _first_reasons(against, len(drops)), float(allowed), resolution)


def _first_reasons(against: list[tuple[np.ndarray, list[str]]], jumps: int) -> list[str]:
    return [next((words[j] for holds, words in against if holds[j]), "") for j in range(jumps)]
