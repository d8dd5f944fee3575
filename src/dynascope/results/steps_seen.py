"""Find plateaus and jumps, and the times at which a loss curve crosses given values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

__all__ = ["SeenSteps", "crossing_times", "resting_levels", "seen_steps"]

# A pause is a plateau where the descent is this many times slower than on either side.
_PLATEAU_DEPTH = 10.0
_ROUND_OFF = 1e-12


class SeenSteps(NamedTuple):
    """The jumps between given plateaus, as observed in a loss curve.

    Attributes:
        times: First time at which the loss is below the midpoint of two adjacent plateaus, shape (jump,); NaN if there
            is none.
        ends: End of the plateau after each jump: midway to the next jump, or the end of the curve.
        levels: Loss at the end of the plateau; NaN if the jump is not observed.
    """

    times: Float[np.ndarray, " jump"]
    ends: Float[np.ndarray, " jump"]
    levels: Float[np.ndarray, " jump"]


def crossing_times(
    time: Float[np.ndarray, " time"], loss: Float[np.ndarray, " time"], values: Float[np.ndarray, " jump"]
) -> Float[np.ndarray, " jump"]:
    """Return the first times at which a loss curve passes below each value; NaN if it never does.

    Example:
        >>> crossing_times(np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, 0.0]), np.array([0.5, -1.0]))
        array([1.5, nan])
    """
    crossings = np.full(len(values), np.nan)
    for j, value in enumerate(values):
        after = int(np.argmax(loss < value))
        if loss[after] < value:
            before = max(after - 1, 0)
            crossings[j] = np.interp(value, [loss[after], loss[before]], [time[after], time[before]])
    return crossings


def resting_levels(
    time: Float[np.ndarray, " time"], loss: Float[np.ndarray, " time"], depth: float = _PLATEAU_DEPTH
) -> list[tuple[float, float]]:
    """Find the plateaus of a decreasing loss curve without a theory.

    At a plateau, the descent rate −dL/dt has a local minimum that is at least `depth` times smaller than the largest
    rates on both sides, up to the neighbouring plateaus.

    Returns:
        The loss of each plateau, in order, and the smaller of the two drops before and after it.

    Example:
        >>> t = np.linspace(0, 20, 2001)
        >>> levels = resting_levels(t, 2 - 1 / (1 + np.exp(5 - t) ** 3) - 1 / (1 + np.exp(15 - t) ** 3))
        >>> [round(level, 3) for level, _ in levels]
        [1.0]
    """
    falls = [0]
    for i in range(1, len(loss)):
        # Smaller falls are round-off, which would make a plateau look rugged.
        if loss[i] < loss[falls[-1]] - _ROUND_OFF * loss[0]:
            falls.append(i)
    time, loss = time[falls], loss[falls]
    rate = -np.diff(loss) / np.diff(time)
    pauses: list[int] = []
    highest, lowest = 0, 0
    rising = True
    for i in range(len(rate)):
        if rising:
            if rate[i] > rate[highest]:
                highest = i
            elif rate[i] * depth < rate[highest]:
                lowest, rising = i, False
        elif rate[i] < rate[lowest]:
            lowest = i
        elif rate[i] > depth * rate[lowest]:
            pauses.append(lowest)
            highest, rising = i, True
    levels = [float(loss[pause] + loss[pause + 1]) / 2 for pause in pauses]
    bounds = [float(loss[0]), *levels, float(loss[-1])]
    return [(level, min(bounds[k] - level, level - bounds[k + 2])) for k, level in enumerate(levels)]


def seen_steps(
    time: Float[np.ndarray, " time"], loss: Float[np.ndarray, " time"], levels: Float[np.ndarray, " level"]
) -> SeenSteps:
    """Find the jumps between given plateaus in a loss curve.

    Example:
        >>> seen_steps(np.arange(5.0), np.array([2.0, 2.0, 1.0, 1.0, 0.9]), np.array([2.0, 1.0, 0.0]))
        SeenSteps(times=array([1.5, nan]), ends=array([4., 4.]), levels=array([0.9, nan]))
    """
    times = crossing_times(time, loss, (levels[1:] + levels[:-1]) / 2)
    # A plateau that nothing is seen to end lasts as long as the curve.
    nexts = np.append(times[1:], np.nan)[: len(times)]
    ends = np.where(np.isnan(nexts), time[-1], (nexts + times) / 2)
    return SeenSteps(times, ends, np.where(np.isnan(times), np.nan, np.interp(ends, time, loss)))
