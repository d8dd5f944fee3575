"""How long after the training samples the test samples are learned: the delay of grokking, on any two curves."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynascope.arguments import require_array, require_count, require_increasing

__all__ = ["GrokkingDelay", "grokking_delay"]


class GrokkingDelay(NamedTuple):
    """By how much the test curve comes after the training curve.

    Attributes:
        train_step: First step from which the training curve holds its threshold, None if it never does.
        test_step: The same of the test curve.
        delay: test_step − train_step; negative if the test curve is first, None if one is never reached.
        decades: log10(test_step/train_step); also None if one of them is 0.
        resolution: The longest of the recording intervals in which the thresholds were passed (of all of them where one
            was not); the delay may be off by as much.
        train_threshold: Threshold of the training curve.
        test_threshold: Threshold of the test curve.
        hold: Number of records for which a curve has to hold its threshold.
    """

    train_step: float | None
    test_step: float | None
    delay: float | None
    decades: float | None
    resolution: float
    train_threshold: float
    test_threshold: float
    hold: int

    def recorded(self, last: float) -> dict[str, Any]:
        """What a record holds of it, with the last step in place of one at which a threshold was never reached.

        Args:
            last: The last step.

        Example:
            >>> grokking_delay([1, 10, 100], [0.5, 1.0, 1.0], [0.1, 0.1, 0.2]).recorded(100)["delay"]
            90.0
        """
        train, test = (float(last if each is None else each) for each in (self.train_step, self.test_step))
        return {
            "train_step": train,
            "test_step": test,
            "delay": test - train,
            "delay_resolution": self.resolution,
            "fitted": self.train_step is not None,
            "generalised": self.test_step is not None,
        }


def grokking_delay(
    steps: ArrayLike,
    train: ArrayLike,
    test: ArrayLike,
    train_threshold: float = 0.99,
    test_threshold: float = 0.9,
    hold: int = 1,
) -> GrokkingDelay:
    """Measure the delay between learning the training samples and learning the test samples.

    A curve has reached its threshold at the first step from which it is at or above it for `hold` records in a row,
    whatever it does later. The number means nothing without the thresholds and the recording interval, which are
    therefore returned with it.

    Args:
        steps: Steps or times of the records, increasing, shape (records,).
        train: Training accuracy, or any other score that rises, such as 1 − relative error, shape (records,).
        test: The same on test samples, shape (records,).
        train_threshold: Threshold of the training curve.
        test_threshold: Threshold of the test curve.
        hold: Number of records, from 1.

    Returns:
        `GrokkingDelay`.

    Raises:
        InputError: Steps that do not increase, fewer than two or than `hold` of them, values that are not finite, or
            lengths that differ.

    References:
        Power et al., arXiv:2201.02177, for the phenomenon.

    Example:
        >>> found = grokking_delay([1, 10, 100, 1000], [0.5, 1.0, 1.0, 1.0], [0.1, 0.1, 0.2, 0.95])
        >>> found.delay, found.decades, found.resolution
        (990.0, 2.0, 900.0)
    """
    steps = require_array("steps", steps, (None,))
    require_count(hold=hold)
    require_increasing("steps", steps, fewest=max(2, hold))
    intervals = np.diff(steps)
    reached = []
    for name, curve, threshold in (("train", train, train_threshold), ("test", test, test_threshold)):
        values = require_array(name, curve, (len(steps),))
        level = float(require_array(f"{name}_threshold", threshold, ()))
        reached.append(_first_held(values >= level, int(hold)))
    known = [float(steps[index]) if index is not None else None for index in reached]
    # The first record was passed at some time before it; the interval after it is the best that is known.
    passed = [intervals.max() if index is None else intervals[max(index - 1, 0)] for index in reached]
    first, second = known
    delay = second - first if first is not None and second is not None else None
    decades = math.log10(second / first) if first and second and first * second > 0 else None
    return GrokkingDelay(
        first, second, delay, decades, float(max(passed)), float(train_threshold), float(test_threshold), hold
    )


def _first_held(above: np.ndarray, hold: int) -> int | None:
    held = np.lib.stride_tricks.sliding_window_view(above, hold).all(axis=1)
    return int(np.argmax(held)) if held.any() else None
