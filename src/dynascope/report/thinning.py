"""Reduce the lines and points of a figure to fit the size limit of a page."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from dynascope.plot.drawing import Drawing
from dynascope.plot.lines import SIDES, Line

__all__ = ["kept_points", "thinned"]

_MOST_POINTS = 2000
_FEWEST_POINTS = 24
_MOST_LINES_A_SIDE = 100
_BYTES_A_POINT = 12
_BYTES_A_LABEL = 700


def thinned(drawing: Drawing, room: int) -> Drawing:
    """Drop lines and points of a drawing until it fits into `room` bytes; observed points are all kept."""
    main, *below = drawing.panels
    lines = [line for side in SIDES for line in _first_lines([each for each in main.lines if each.side == side], room)]
    written = sum(1 if line.low is None else 3 for line in lines)  # pairs of numbers for each point
    points = (room - _BYTES_A_LABEL * len(lines)) / _BYTES_A_POINT / written
    most = int(np.clip(points, _FEWEST_POINTS, _MOST_POINTS))
    panels = [dataclasses.replace(panel, lines=[_thinned(line, most) for line in panel.lines]) for panel in below]
    main = dataclasses.replace(main, lines=[_thinned(line, most) for line in lines])
    return dataclasses.replace(drawing, panels=(main, *panels))


def kept_points(x: Float[np.ndarray, " n"], most: int) -> Int[np.ndarray, " m"]:
    """Choose points of a curve: half evenly spaced in x, half evenly spaced in log x, and both ends.

    The thinned curve keeps its shape on linear and on logarithmic axes.

    Args:
        x: Increasing values.
        most: Maximum number of points, at least 4.

    Example:
        >>> kept_points(np.arange(1001.0), 8)
        array([   0,    1,   10,  100,  334,  667, 1000])
        >>> kept_points(np.array([0.0, 1.0, 7.0]), 8)
        array([0, 1, 2])
    """
    if len(x) <= most:
        return np.arange(len(x))
    wanted = np.linspace(x[0], x[-1], most // 2)
    positive = x[x > 0]
    if len(positive):
        wanted = np.concatenate([wanted, np.geomspace(positive[0], positive[-1], most // 2)])
    return np.unique(np.searchsorted(x, wanted).clip(0, len(x) - 1))


def _first_lines(lines: Sequence[Line], room: int) -> list[Line]:
    """Keep the first lines that fit; lines with the same label are kept or dropped together."""
    labels = list(dict.fromkeys(line.label for line in lines))[: max(4, room // (4 * _BYTES_A_LABEL))]
    kept = [line for line in lines if line.label in labels]
    return kept[: min(_MOST_LINES_A_SIDE, max(4, room // (48 * _BYTES_A_POINT)))]


def _thinned(line: Line, most: int) -> Line:
    if line.style in ("points", "dots"):
        return line
    # A path in a plane may turn back, so it is thinned evenly by index.
    rising = bool(np.all(np.diff(line.x) > 0))
    kept = kept_points(line.x if rising else np.arange(float(len(line.x))), most)
    low, high = (None if each is None else each[kept] for each in (line.low, line.high))
    return dataclasses.replace(line, x=line.x[kept], y=line.y[kept], low=low, high=high)
