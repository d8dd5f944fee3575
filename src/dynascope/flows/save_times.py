"""At which times and steps a flow is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
from annotated_types import Ge
from jaxtyping import Float, Int, Real

from dynascope.validation import checked, require, require_array, require_room

__all__ = ["SaveTimes", "recorded_steps", "recorded_times"]

SaveTimes: TypeAlias = Annotated[int, Ge(2)] | Sequence[float] | Real[np.ndarray, " times"]


@checked
def recorded_times(save: SaveTimes, duration: float) -> Float[np.ndarray, " time"]:
    """So many equally spaced times from 0 to the duration, or the given ones.

    Raises:
        InputError: Fewer than two times, or such that do not increase from 0 to the duration.

    Example:
        >>> recorded_times(3, 8.0), recorded_times([1, 2], 8.0)
        (array([0., 4., 8.]), array([1., 2.]))
    """
    if isinstance(save, int):
        require_room(save, save=save)
        return np.linspace(0.0, duration, save)
    times = require_array("save", save, (None,))
    require(
        times.size > 0 and bool(np.all(np.diff(times) > 0) and times[0] >= 0 and times[-1] <= duration),
        "the times in save do not increase from 0 to the duration",
        argument="save",
        remedy="sort them, drop repeats, and keep them within 0 and the duration",
    )
    return times


def recorded_steps(name: str, chosen: Any, last: int) -> Int[np.ndarray, " step"]:
    """The given steps.

    Args:
        name: Name of the argument, for the message.
        chosen: Whole numbers that increase from 0 to the last.
        last: The last step.

    Raises:
        InputError: They are no such numbers.

    Example:
        >>> recorded_steps("record_steps", [0, 5], 10)
        array([0, 5])
    """
    try:
        recorded = np.asarray(chosen)
    except ValueError:
        recorded = np.array(np.nan)
    require(
        recorded.ndim == 1
        and recorded.size > 0
        and recorded.dtype.kind in "iu"
        and bool(np.all(np.diff(recorded) > 0) and recorded[0] >= 0 and recorded[-1] <= last),
        f"{name} are not increasing whole numbers from 0 to {last}",
        argument=name,
        remedy=f"sort them, drop repeats, and keep them within 0 and {last}",
    )
    return recorded.astype(np.int64)
