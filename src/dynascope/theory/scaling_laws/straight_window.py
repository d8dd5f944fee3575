"""Selection of the points of a loss curve to fit: thinning per decade, and the widest straight window."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from dynascope.validation import require

__all__ = ["checked_window", "line_through", "local_slopes", "straight_stretch", "thinned"]

_PER_DECADE = 20
_BENDING = 0.03  # largest difference of local exponents in an automatic window, relative to the exponent


def checked_window(window: tuple[float, float] | None, resource: np.ndarray) -> tuple[float, float]:
    """Return the smallest and largest resource to fit."""
    if window is None:
        return float(resource[0]), float(resource[-1])
    low, high = window
    require(
        low < high,
        f"window is {window}",
        argument="window",
        value=window,
        remedy="give the smallest and then the largest resource",
    )
    return float(low), float(high)


def line_through(x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
    """Fit a line along the last axis of y; return its value at x = 0 and minus its slope."""
    centred = x - x.mean()
    exponent = -(y @ centred) / (centred @ centred)
    return y.mean(axis=-1) + exponent * x.mean(), exponent


def local_slopes(x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, " pairs"]:
    """Exponents between neighbouring parts of the window: thirds, or decades if the window is wide."""
    number = min(max(3, round((x[-1] - x[0]) / math.log(10))), len(x))
    parts = np.array_split(np.arange(len(x)), number)
    centres = np.array([[x[part].mean(), y[part].mean()] for part in parts])
    return -np.diff(centres[:, 1]) / np.diff(centres[:, 0])


def thinned(decades: np.ndarray) -> np.ndarray:
    """Indices of the first point in each twentieth of a decade, so that late times do not dominate the fit."""
    if len(decades) == 0:
        return np.arange(0)
    return np.unique(np.floor((decades - decades[0]) * _PER_DECADE + 1e-6), return_index=True)[1]


def straight_stretch(x: np.ndarray, y: np.ndarray) -> tuple[int, int]:
    """Return the first index of the widest straight window and the index after its last point."""
    best, found = (-math.inf, -math.inf), (0, len(x))
    for first in range(len(x) - 2):
        for last in range(len(x), first + 2, -1):
            width = x[last - 1] - x[first]
            if width < best[0] - 1e-9:
                break
            bend, tolerance = _bend(x[first:last], y[first:last])
            if bend <= max(_BENDING, tolerance) and (width, -bend) > best:
                best, found = (width, -bend), (first, last)
    return found


def _bend(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the relative range of the local exponents, and twice the range expected from the scatter of the points."""
    width, descent = x[-1] - x[0], y[0] - y[-1]
    if descent <= 0:
        return math.inf, 0.0
    slopes = local_slopes(x, y)
    # Second differences respond to the scatter of neighbouring points, not to a slow bend.
    share = (x[2:] - x[1:-1]) / (x[2:] - x[:-2])
    scatter = y[1:-1] - share * y[:-2] - (1 - share) * y[2:]
    noise = math.sqrt(np.mean(scatter**2) / 1.5)
    parts = len(slopes) + 1
    of_one_slope = noise * math.sqrt(2 * parts / len(x)) * parts / width
    return float(np.ptp(slopes)) * width / descent, 2 * math.sqrt(2) * of_one_slope * width / descent
