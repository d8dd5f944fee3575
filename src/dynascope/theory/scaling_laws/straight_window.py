"""Which points of a curve of losses are fitted: not too many in a decade, and where it is straight if it has to be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from dynascope.validation import require

__all__ = ["checked_window", "line_through", "local_slopes", "straight_stretch", "thinned"]

_PER_DECADE = 20
_BENDING = 0.03  # of the exponent, by which local ones may differ in an automatic window


def checked_window(window: tuple[float, float] | None, resource: np.ndarray) -> tuple[float, float]:
    """The least and the greatest resource to fit."""
    if window is None:
        return float(resource[0]), float(resource[-1])
    low, high = window
    require(
        low < high,
        f"window is {window}",
        argument="window",
        value=window,
        remedy="give the least and the greatest resource, in order",
    )
    return float(low), float(high)


def line_through(x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
    """Value at x = 0 and minus the slope of the line through points, along the last axis of y."""
    centred = x - x.mean()
    exponent = -(y @ centred) / (centred @ centred)
    return y.mean(axis=-1) + exponent * x.mean(), exponent


def local_slopes(x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, " pairs"]:
    """Exponents between neighbouring parts of the window: thirds, or in a wide window decades."""
    number = min(max(3, round((x[-1] - x[0]) / math.log(10))), len(x))
    parts = np.array_split(np.arange(len(x)), number)
    centres = np.array([[x[part].mean(), y[part].mean()] for part in parts])
    return -np.diff(centres[:, 1]) / np.diff(centres[:, 0])


def thinned(decades: np.ndarray) -> np.ndarray:
    """Places of the first point in each twentieth of a decade, so that late times do not outweigh all others."""
    if len(decades) == 0:
        return np.arange(0)
    return np.unique(np.floor((decades - decades[0]) * _PER_DECADE + 1e-6), return_index=True)[1]


def straight_stretch(x: np.ndarray, y: np.ndarray) -> tuple[int, int]:
    """First place of the stretch and the one after its last."""
    best, found = (-math.inf, -math.inf), (0, len(x))
    for first in range(len(x) - 2):
        for last in range(len(x), first + 2, -1):
            width = x[last - 1] - x[first]
            if width < best[0] - 1e-9:
                break
            bend, excused = _bend(x[first:last], y[first:last])
            if bend <= max(_BENDING, excused) and (width, -bend) > best:
                best, found = (width, -bend), (first, last)
    return found


def _bend(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """By how much the local exponents differ, over that of the window, and by how much scatter makes them differ."""
    width, descent = x[-1] - x[0], y[0] - y[-1]
    if descent <= 0:
        return math.inf, 0.0
    slopes = local_slopes(x, y)
    # Second differences see the scatter of neighbours and not a slow bend.
    share = (x[2:] - x[1:-1]) / (x[2:] - x[:-2])
    scatter = y[1:-1] - share * y[:-2] - (1 - share) * y[2:]
    noise = math.sqrt(np.mean(scatter**2) / 1.5)
    parts = len(slopes) + 1
    of_one_slope = noise * math.sqrt(2 * parts / len(x)) * parts / width
    return float(np.ptp(slopes)) * width / descent, 2 * math.sqrt(2) * of_one_slope * width / descent
