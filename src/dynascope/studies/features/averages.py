"""Standard errors of means and medians over draws."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["error_of_mean", "error_of_median"]


def error_of_mean(draws: np.ndarray) -> Any:
    """The standard error of the mean over the first axis.

    Example:
        >>> float(error_of_mean(np.array([1.0, 3.0])))
        1.0
    """
    return np.std(draws, axis=0, ddof=1) / np.sqrt(len(draws))


def error_of_median(draws: np.ndarray) -> Any:
    """The standard error of the median over the first axis, from the quartiles, which are robust to heavy tails.

    Example:
        >>> normal = np.random.default_rng(0).normal(size=10_000)
        >>> float((error_of_median(normal) * 100).round(1))
        1.3
    """
    quarter, three = np.percentile(draws, [25, 75], axis=0)
    # Normal quartiles are 1.349 standard deviations apart; the normal median has √(π/2) times the error of the mean.
    return (three - quarter) / 1.349 * np.sqrt(np.pi / 2 / len(draws))
