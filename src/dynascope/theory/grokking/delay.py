"""The delay of grokking: how long after the training samples a network learns the test samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dynascope.results.named_tuples import short_repr
from dynascope.validation import require, require_array, require_increasing
from dynascope.validation.bounded import FiniteFloat, FiniteNumbers, PositiveInt

__all__ = ["GrokkingDelay", "grokking_delay"]

_ROUNDING = 1e-6  # of an average of ones in float32
_NO_HIGHER = 1.1  # times its first value; a loss curve stays below
_FALLEN, _VANISHED = 0.5, 0.01  # of the first value; a loss curve ends below


class GrokkingDelay(NamedTuple):
    """How long after the training curve the test curve reaches its threshold.

    Attributes:
        train_step: First step from which the training curve holds its threshold, None if it never does.
        test_step: The same of the test curve.
        delay: test_step − train_step, None if one of them is. It is negative if the test curve reaches its threshold
            first: there is no grokking.
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

    __repr__ = short_repr

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
    steps: FiniteNumbers,
    train: FiniteNumbers,
    test: FiniteNumbers,
    train_threshold: FiniteFloat = 0.99,
    test_threshold: FiniteFloat = 0.9,
    hold: PositiveInt = 1,
) -> GrokkingDelay:
    """Measure the delay between learning the training samples and learning the test samples.

    A curve reaches its threshold at the first step from which it is at or above the threshold for `hold` records in a
    row, whatever it does later. The delay means nothing without the thresholds and the recording interval, which are
    therefore returned with it.

    The default thresholds are fractions. For accuracies in percent divide both curves by 100, or give both thresholds
    in percent. Nothing is converted: a curve in percent and a threshold as a fraction raise an error. So do losses.

    Args:
        steps: Steps or times of the records, increasing, shape (records,).
        train: Training accuracy as a fraction, or any other score that rises to at most 1, such as 1 − relative error,
            shape (records,). It may exceed 1, as in percent, if both thresholds do.
        test: The same on test samples, shape (records,).
        train_threshold: Threshold of the training curve, in its unit.
        test_threshold: Threshold of the test curve, in its unit.
        hold: Number of records, from 1.

    Returns:
        `GrokkingDelay`. Steps and delays are None where a curve never reaches its threshold; a test curve that reaches
        it before the training curve has a negative delay.

    Raises:
        InputError: Steps that do not increase, fewer than two or than `hold` of them, values that are not finite, or
            lengths that differ. A curve above 1 with a threshold of at most 1, and the reverse if the curve would reach
            a hundredth of the threshold; one threshold above 1 and one not. A curve that falls as a loss does: from its
            largest value to below half of it, or below 1 % if it starts far below its threshold.

    References:
        Power et al., arXiv:2201.02177, for the phenomenon.

    Example:
        >>> found = grokking_delay([1, 10, 100, 1000], [0.5, 1.0, 1.0, 1.0], [0.1, 0.1, 0.2, 0.95])
        >>> found.delay, found.decades, found.resolution
        (990.0, 2.0, 900.0)
    """
    steps = require_array("steps", steps, (None,))
    require_increasing("steps", steps, fewest=max(2, hold))
    intervals = np.diff(steps)
    curves = {name: require_array(name, curve, (len(steps),)) for name, curve in (("train", train), ("test", test))}
    levels = {"train": float(train_threshold), "test": float(test_threshold)}
    _require_rising(curves, levels)
    _require_one_unit(curves, levels)
    reached = [_first_held(curves[name] >= levels[name], hold) for name in curves]
    known = [float(steps[index]) if index is not None else None for index in reached]
    # The first record was passed at some time before it; the interval after it is the best that is known.
    passed = [intervals.max() if index is None else intervals[max(index - 1, 0)] for index in reached]
    first, second = known
    delay = second - first if first is not None and second is not None else None
    decades = math.log10(second / first) if first and second and first * second > 0 else None
    return GrokkingDelay(first, second, delay, decades, float(max(passed)), levels["train"], levels["test"], hold)


def _require_rising(curves: Mapping[str, np.ndarray], levels: Mapping[str, float]) -> None:
    """Raise `InputError` if a curve falls as a loss does."""
    for name, values in curves.items():
        first, last = values[[0, -1]]
        # Noise can halve an accuracy at chance, and so can memorisation on test samples.
        high = first >= (levels[name] / 2 if name == "train" else levels[name])
        fallen = last < _FALLEN * first if high else 0 < last < _VANISHED * first
        require(
            not (fallen and 0 < values.max() <= _NO_HIGHER * first),
            f"{name} falls from {first:.4g} to {last:.4g}, as a loss does",
            argument=name,
            value=float(last),
            remedy="give accuracies, or a score that rises, such as 1 - loss / loss[0]",
        )


def _require_one_unit(curves: Mapping[str, np.ndarray], levels: Mapping[str, float]) -> None:
    """Raise `InputError` if curves and thresholds are not all fractions, or all percentages."""
    for name, values in curves.items():
        level, largest = levels[name], float(values.max())
        require(
            level > 1 or largest <= 1 + _ROUNDING,
            f"{name} goes up to {largest:.4g} and {name}_threshold is {level:g}",
            argument=name,
            value=largest,
            remedy="give accuracies, not losses, as fractions (percentages divided by 100); or give percent thresholds",
        )
        # Up to one per cent a curve may be either; it matters where a fraction would reach the threshold.
        require(
            level <= 1 or largest > 1 or largest < level / 100,
            f"{name}_threshold is {level:g} and {name} goes up to {largest:.4g}",
            argument=f"{name}_threshold",
            value=level,
            remedy="give curves and thresholds as fractions",
        )
    require(
        (levels["train"] > 1) == (levels["test"] > 1),
        f"train_threshold is {levels['train']:g} and test_threshold is {levels['test']:g}",
        argument="test_threshold",
        value=levels["test"],
        remedy="give curves and thresholds as fractions, or all of them in percent",
    )


def _first_held(above: np.ndarray, hold: int) -> int | None:
    held = np.lib.stride_tricks.sliding_window_view(above, hold).all(axis=1)
    return int(np.argmax(held)) if held.any() else None
