"""A loss curve without its noise: gradient descent in small steps only falls, so whatever rises is noise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy
from jaxtyping import Float

__all__ = ["WINDOW", "SteadyCurve", "steady_curve"]

WINDOW = 0.03  # share of the time on either side over which a noisy curve is averaged, small against what times may err
_DECIMALS = range(7)
_FEW = 20  # points that tell a spread
_RISES = 1e-5  # of the first loss, where single precision rounds by 1e-7; less of them makes no curve look rugged


class SteadyCurve(NamedTuple):
    """A loss curve as it is judged.

    Attributes:
        time: When it was logged, shape (n,).
        loss: As it was logged, or its best falling fit if it is noisy.
        rise: By how much it rises at most, over its first loss.
        spread: Standard deviation of the logged loss around the fit, up to each time; zero if it is not noisy.
        averaged: Over how many points the fit is averaged at each time.
        unit: The power of ten that its losses were rounded to, as in a printed table; zero if they were not.
    """

    time: Float[np.ndarray, " n"]
    loss: Float[np.ndarray, " n"]
    rise: float
    spread: Float[np.ndarray, " n"]
    averaged: Float[np.ndarray, " n"]
    unit: float

    @property
    def noisy(self) -> bool:
        """Whether it rises by more than rounding explains."""
        return self.rise > _RISES

    def error(self, time: float) -> float:
        """Standard error of the fit at a time; that of rounding is at most half a unit."""
        place = min(int(np.searchsorted(self.time, time)), len(self.time) - 1)
        return float(max(self.spread[place] / np.sqrt(self.averaged[place]), self.unit / 4))


def steady_curve(time: Float[np.ndarray, " n"], loss: Float[np.ndarray, " n"], rest: float) -> SteadyCurve:
    """The best falling fit of a curve that fluctuates, averaged over a small share of the time; another as it is.

    Args:
        time: When the loss was logged, shape (n,).
        loss: What was logged, shape (n,).
        rest: Until when nothing is expected to be learned, so that the loss is averaged over it all.

    Example:
        >>> time, noise = np.arange(4000.0), np.random.default_rng(0).normal(size=4000)
        >>> steady = steady_curve(time, np.where(time < 2000, 1.0, 0.5) + 0.03 * noise, rest=1000.0)
        >>> steady.noisy, steady.loss[[0, -1]].round(2)
        (True, array([1. , 0.5]))
    """
    rise = float(np.max(loss - np.minimum.accumulate(loss)) / loss[0])
    unit = next((10.0**-k for k in _DECIMALS if np.allclose(np.round(loss, k), loss, rtol=1e-12, atol=0)), 0.0)
    nothing = SteadyCurve(time, loss, rise, np.zeros(len(loss)), np.ones(len(loss)), unit)
    if not nothing.noisy:
        return nothing
    first = np.searchsorted(time, np.where(time <= rest, 0.0, time * (1 - WINDOW)), "left")
    last = np.searchsorted(time, np.where(time <= rest, rest, time * (1 + WINDOW)), "right")
    last = np.maximum(last, first + 1)
    sums = np.append(0.0, np.cumsum(loss))
    fit = scipy.optimize.isotonic_regression((sums[last] - sums[first]) / (last - first), increasing=False).x
    squares = np.append(0.0, np.cumsum((loss - fit) ** 2))
    # Over all that is averaged, and the second half of the time: the noise of minibatches falls with the loss.
    end = np.where(time <= rest, last, np.arange(1, len(time) + 1))
    begin = np.where(time <= rest, 0, np.maximum(np.minimum(np.searchsorted(time, time / 2), end - _FEW), 0))
    spread = np.sqrt((squares[end] - squares[begin]) / (end - begin))
    return SteadyCurve(time, fit, rise, spread, (last - first).astype(float), unit)
