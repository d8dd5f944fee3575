"""How figures for files look: strokes of either side, axes, numbers of jumps, names at the ends of lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dynascope.plot import traces
from dynascope.plot.axes import literal
from dynascope.plot.layout import MOST_IN_A_LEGEND, direct_labels

__all__ = ["BAR", "name_lines", "new_axes", "number_jumps", "stroke", "styled"]


BAR = {"linestyle": "", "marker": "_", "markersize": 16, "markeredgewidth": 1.8, "zorder": 3}  # a prediction at a name


def stroke(side: str, alone: bool, *, crowded: bool) -> dict[str, Any]:
    """How a side is drawn: a pale broad line under a dark dashed one where both have the same colour."""
    if side == "predicted":
        return {
            "linestyle": (0, (4, 2)),
            "linewidth": 1.4 if alone else 0.8,
            "alpha": 1.0 if alone else 0.6,
            "zorder": 3,
        }
    if side == traces.AT_SCALE:
        return {"linestyle": (0, (1, 1.5)), "linewidth": 1.4, "alpha": 1.0, "zorder": 4}
    if not alone:
        return {"linestyle": "-", "linewidth": 0.7, "alpha": 0.5, "zorder": 2}
    return {"linestyle": "-", "linewidth": 2.8 if crowded else 2.0, "alpha": 0.5 if crowded else 1.0, "zorder": 2}


def name_lines(axes: Axes, lines: Sequence[traces.Trace], *, points: bool = False, bars: bool = False) -> None:
    """Say which line is which: a legend of the sides and of few members, or each name at the end of its line."""
    labels = list(dict.fromkeys(line.label for line in lines))
    handles = []
    for side in dict.fromkeys(line.side for line in lines):
        colour = traces.FAINT if len(labels) > 1 else next(line.colour for line in lines if line.side == side)
        handle = Line2D([], [], color=colour, label=side)
        mark = {"linestyle": "", "marker": "o"} if points and side == "observed" else stroke(side, True, crowded=False)
        handle.set(**BAR if bars and side == "predicted" else mark)
        handles.append(handle)
    if 1 < len(labels) <= MOST_IN_A_LEGEND:
        colours = {line.label: line.colour for line in lines}
        handles += [Line2D([], [], color=colours[label], linewidth=4, label=literal(label)) for label in labels]
    elif len(labels) > MOST_IN_A_LEGEND:
        for x, y, label, colour in direct_labels(lines, log_y=axes.get_yscale() == "log"):
            axes.annotate(
                literal(label),
                (x, y),
                (4, 0),
                textcoords="offset points",
                va="center",
                color=colour,
                fontsize="x-small",
                annotation_clip=False,
            )
    axes.legend(handles=handles, frameon=False, fontsize="small")


def number_jumps(axes: Axes, line: traces.Trace) -> None:
    """Write the number of each jump above it, except where numbers would run into each other."""
    corners = np.stack(traces.corners(line)[:2], axis=1)
    places = axes.transAxes.inverted().transform(axes.transData.transform(corners))
    taken = np.array([-np.inf, np.inf])
    for number, (corner, place) in enumerate(zip(corners, places, strict=True), start=1):
        if np.any(np.abs(place - taken) > (0.025, 0.05)):
            axes.annotate(
                str(number), tuple(corner), (3, 2), textcoords="offset points", fontsize="x-small", color=traces.FAINT
            )
            taken = place


def new_axes(height: float = 3.8) -> Axes:
    """Axes of a bare figure."""
    return styled(Figure(figsize=(7.2, height), layout="constrained").add_subplot())


def styled(axes: Axes) -> Axes:
    """The axes, with as little ink as they need."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#bbbbbb")
    axes.tick_params(which="both", color="#bbbbbb", labelcolor="#444444", labelsize=9)
    axes.grid(color="#eeeeee", linewidth=0.8)
    axes.set_axisbelow(True)
    return axes
