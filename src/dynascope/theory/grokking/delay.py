"""Grokking delay: the number of steps between learning the training samples and learning the test samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dynascope.results.named_tuples import short_repr
from dynascope.validation import require, require_array, require_increasing
from dynascope.validation.bounded import FiniteFloat, FiniteNumbers, PositiveInt

__all__ = ["GrokkingDelay", "grokking_delay"]

_ROUNDING = 1e-6  # rounding error of an accuracy of one in float32
_NO_HIGHER = 1.1  # a loss curve stays below this factor times its first value
_FALLEN, _VANISHED = 0.5, 0.01  # a loss curve ends below these fractions of its first value


class GrokkingDelay(NamedTuple):
    """Number of steps between the threshold crossings of the training curve and the test curve.

    Attributes:
        train_step: First step at which the training curve reaches its threshold, None if it never does.
        test_step: First step at which the test curve reaches its threshold, None if it never does.
        delay: test_step − train_step, None if either is None. A negative delay means that the test curve reaches its
            threshold first, so there is no grokking.
        decades: log10(test_step/train_step), None if either is None or zero.
        resolution: Possible error of the delay: the longer of the two recording intervals in which the curves passed
            their thresholds. If a curve never passes its threshold, it is the longest of all intervals.
        train_threshold: Threshold of the training curve.
        test_threshold: Threshold of the test curve.
        hold: Number of consecutive records for which a curve must be at or above its threshold.
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
        """Return the result as a dictionary, with the last step in place of a step that is None.

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

    A curve reaches its threshold at the first of `hold` consecutive records at or above the threshold; later records do
    not matter. The delay depends on the thresholds and the recording interval, so the result contains both.

    The default thresholds are fractions. For accuracies in percent, divide both curves by 100, or give both thresholds
    in percent. The function does not convert units: a curve in percent with a threshold as a fraction raises
    `InputError`, and so does a loss curve.

    Args:
        steps: Steps or times of the records, increasing, shape (records,).
        train: Training accuracy as a fraction, or any other score that rises to at most 1, such as 1 − relative error,
            shape (records,). Scores above 1, such as percentages, require both thresholds to exceed 1.
        test: The same score on test samples, shape (records,).
        train_threshold: Threshold of the training curve, in the same unit as the curve.
        test_threshold: Threshold of the test curve, in the same unit as the curve.
        hold: Number of consecutive records for which a curve must be at or above its threshold, at least 1.

    Returns:
        A `GrokkingDelay`. The delay is None if a curve never reaches its threshold, and negative if the test curve
        reaches its threshold first.

    Raises:
        InputError: If the steps do not increase, there are fewer than two records or fewer than `hold`, a value is not
            finite, or the lengths differ. Also if curves and thresholds appear to have different units: only one of the
            two thresholds exceeds 1, a curve exceeds 1 but its threshold does not, or a threshold exceeds 1 and its
            curve does not, although 100 times the curve reaches the threshold. Also if a curve falls like a loss: its
            first value is close to its largest, and its last value is below half of the first (below 1 % of it if the
            curve starts far below its threshold).

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
    # A threshold reached at the first record was passed before it; the first interval is the best estimate.
    passed = [intervals.max() if index is None else intervals[max(index - 1, 0)] for index in reached]
    first, second = known
    delay = second - first if first is not None and second is not None else None
    decades = math.log10(second / first) if first and second and first * second > 0 else None
    return GrokkingDelay(first, second, delay, decades, float(max(passed)), levels["train"], levels["test"], hold)


def _require_rising(curves: Mapping[str, np.ndarray], levels: Mapping[str, float]) -> None:
    """Raise `InputError` if a curve falls like a loss."""
    for name, values in curves.items():
        first, last = values[[0, -1]]
        # Noise can halve an accuracy at chance level, and so can memorisation for test samples.
        high = first >= (levels[name] / 2 if name == "train" else levels[name])
        fallen = last < _FALLEN * first if high else 0 < last < _VANISHED * first
        require(
            not (fallen and 0 < values.max() <= _NO_HIGHER * first),
            f"{name} falls from {first:.4g} to {last:.4g}, like a loss",
            argument=name,
            value=float(last),
            remedy="give accuracies, or an increasing score, such as 1 - loss / loss[0]",
        )


def _require_one_unit(curves: Mapping[str, np.ndarray], levels: Mapping[str, float]) -> None:
    """Raise `InputError` if curves and thresholds are not all fractions, or all percentages."""
    for name, values in curves.items():
        level, largest = levels[name], float(values.max())
        require(
            level > 1 or largest <= 1 + _ROUNDING,
            f"{name} reaches {largest:.4g}, but {name}_threshold is {level:g}",
            argument=name,
            value=largest,
            remedy="give accuracies instead of losses, with curves and thresholds in the same units",
        )
        # A curve of at most one may be in percent; it is ambiguous only if it would reach the threshold as a fraction.
        require(
            level <= 1 or largest > 1 or largest < level / 100,
            f"{name}_threshold is {level:g}, but {name} reaches only {largest:.4g}",
            argument=f"{name}_threshold",
            value=level,
            remedy="give curves and thresholds as fractions",
        )
    require(
        (levels["train"] > 1) == (levels["test"] > 1),
        f"train_threshold is {levels['train']:g}, but test_threshold is {levels['test']:g}",
        argument="test_threshold",
        value=levels["test"],
        remedy="give all curves and thresholds as fractions, or all in percent",
    )


def _first_held(above: np.ndarray, hold: int) -> int | None:
    held = np.lib.stride_tricks.sliding_window_view(above, hold).all(axis=1)
    return int(np.argmax(held)) if held.any() else None
