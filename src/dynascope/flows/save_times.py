"""The times and steps at which a flow is recorded."""

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
    """Return equally spaced times from 0 to the duration, or check the given times.

    Raises:
        InputError: If there are fewer than two equally spaced times, or if the given times are not increasing between 0
            and the duration.

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
        f"the times in save are not an increasing sequence between 0 and the duration, {duration:g}",
        argument="save",
        remedy="sort the times, and remove duplicates and times outside this interval",
    )
    return times


def recorded_steps(name: str, chosen: Any, last: int) -> Int[np.ndarray, " step"]:
    """Check the steps to record.

    Args:
        name: Name of the argument, for the error message.
        chosen: Increasing integers between 0 and `last`.
        last: The last step.

    Raises:
        InputError: If the steps are not increasing integers between 0 and `last`.

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
        f"{name} is not an increasing sequence of integers between 0 and {last}",
        argument=name,
        remedy="sort the steps, and remove duplicates and steps outside this interval",
    )
    return recorded.astype(np.int64)
