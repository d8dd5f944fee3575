"""Draw the description of a figure with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from dynascope.plot.drawing import Axis, Drawing, Jump, Panel
from dynascope.plot.lines import FAINT, Line
from dynascope.results.chart import Chart

__all__ = ["WIDTH", "caption_height", "draw", "draw_with_caption", "literal", "new_axes", "styled"]

WIDTH = 7.2  # inches
_IN_A_ROW = 55  # characters of tick labels that fit side by side
_LETTERS = 105  # characters in one line of a caption
_SOLID = {
    "full": {"linewidth": 2.0, "zorder": 2},
    "pale": {"linewidth": 2.8, "alpha": 0.5, "zorder": 2},
    "thin": {"linewidth": 0.7, "alpha": 0.5, "zorder": 2},
}
_DASHES = {"linestyle": (0, (4, 2)), "zorder": 3}
_MARKS = {"linestyle": "", "marker": "o", "zorder": 2}
_BARS = {"linestyle": "", "marker": "_", "markersize": 16, "markeredgewidth": 1.8, "zorder": 3}
_LOOKS: dict[str, dict[str, dict[str, Any]]] = {
    "solid": _SOLID,
    "marked": {name: {**each, "marker": "o", "markersize": 3.5} for name, each in _SOLID.items()},
    "arrow": _SOLID,
    "dashed": {
        "full": {**_DASHES, "linewidth": 1.4},
        "thin": {**_DASHES, "linewidth": 0.8, "alpha": 0.6},
    },
    "dotted": {"full": {"linestyle": (0, (1.5, 2.5)), "linewidth": 1.4, "zorder": 4}},
    "points": {"full": {**_MARKS, "markersize": 4.5}},
    "dots": {"full": {**_MARKS, "markersize": 2.5}},
    "bars": {"full": _BARS},
    "difference": {"full": {"linewidth": 1.2}, "thin": {"linewidth": 0.6}},
}


def draw(drawing: Drawing, panels: Sequence[Axes]) -> None:
    """Draw every panel on its axes."""
    for axes, panel in zip(panels, drawing.panels, strict=True):
        _draw_panel(axes, panel, drawing.x)
    bottom, x = panels[-1], drawing.x
    bottom.set_xlabel(literal(x.label))
    if x.ticks:
        words = [literal(each) for each in x.ticks.values()]
        slanted = sum(map(len, words)) > _IN_A_ROW
        bottom.set_xticks(list(x.ticks), words, rotation=20 * slanted, ha="right" if slanted else "center")
    if x.range is not None:
        bottom.set_xlim(*x.range)


def draw_with_caption(drawing: Drawing, figure: Figure | SubFigure) -> None:
    """Draw on a figure, with the title above the panels and the caption below."""
    heights = [3, 1][: len(drawing.panels)]
    panels = list(figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0])
    draw(drawing, [styled(axes) for axes in panels])
    panels[0].set_title(literal(drawing.chart.title), loc="left", fontsize="medium")
    if drawing.chart.caption:
        words = literal(fill(drawing.chart.caption, _LETTERS))
        figure.supxlabel(words, x=0.01, ha="left", fontsize="small", color="#444444")


def caption_height(chart: Chart) -> float:
    """Return the height in inches of a chart with its caption."""
    return 3.4 + 1.0 * chart.residual + 0.17 * (len(chart.caption) // _LETTERS + 1) * bool(chart.caption)


def new_axes(height: float = 3.8) -> Axes:
    """Return the axes of a new figure."""
    return styled(Figure(figsize=(WIDTH, height), layout="constrained").add_subplot())


def styled(axes: Axes) -> Axes:
    """Apply a minimal style to axes."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#bbbbbb")
    axes.tick_params(which="both", color="#bbbbbb", labelcolor="#444444", labelsize=9)
    axes.grid(color="#eeeeee", linewidth=0.8)
    axes.set_axisbelow(True)
    return axes


def literal(text: str) -> str:
    """Escape dollar signs, which would otherwise start a formula."""
    return text.replace("$", r"\$")


def _draw_panel(axes: Axes, panel: Panel, x: Axis) -> None:
    if panel.y.zero:
        axes.axhline(0, color="#bbbbbb", linewidth=0.8)
    for line in panel.lines:
        looks = _LOOKS[line.style]
        axes.plot(line.x, line.y, color=line.colour, **looks.get(line.weight, looks["full"]))
        if panel.starts:
            axes.plot(line.x[:1], line.y[:1], "o", color=line.colour, markersize=4)
        if line.style == "arrow":
            head = {"arrowstyle": "-|>", "color": line.colour, "shrinkA": 0, "shrinkB": 0, "linewidth": 0}
            axes.annotate("", (line.x[-1], line.y[-1]), (line.x[-2], line.y[-2]), arrowprops=head)
        if line.low is None or line.high is None:
            continue
        if line.has_error_bars:
            lengths = np.abs(np.stack([line.y - line.low, line.high - line.y]))
            axes.errorbar(line.x, line.y, lengths, fmt="none", ecolor=line.colour, elinewidth=1, capsize=2)
        else:
            axes.fill_between(line.x, line.low, line.high, color=line.colour, alpha=0.2, linewidth=0)
    axes.set(xscale="log" if x.log else "linear", yscale="log" if panel.y.log else "linear")
    axes.set_ylabel(literal(panel.y.label), fontsize="small" if panel.y.zero else None)
    for end in panel.ends:
        _note(axes, literal(end.text), (end.x, end.y), (4, 0), end.colour, va="center", annotation_clip=False)
    if not panel.y.zero:
        axes.legend(handles=_handles(panel), frameon=False, fontsize="small")
    _number(axes, panel.jumps)


def _handles(panel: Panel) -> list[Line2D]:
    """Return one legend entry for each side and for each label."""
    first: dict[str, Line] = {}
    for line in panel.lines:
        first.setdefault(line.side, line)
    several = bool(panel.legend or panel.ends)
    sides = {} if several and len(first) == 1 else first
    return [
        *(
            Line2D([], [], label=side, color=FAINT if several else line.colour, **_LOOKS[line.style]["full"])
            for side, line in sides.items()
        ),
        *(Line2D([], [], label=literal(label), color=each, linewidth=4) for label, each in panel.legend.items()),
    ]


def _number(axes: Axes, jumps: Sequence[Jump]) -> None:
    """Write the number of each jump above it, except where numbers would overlap."""
    taken = np.array([-np.inf, np.inf])
    for number, jump in enumerate(jumps, start=1):
        corner = jump.x, jump.before
        place = axes.transAxes.inverted().transform(axes.transData.transform(corner))
        if np.any(np.abs(place - taken) > (0.025, 0.05)):
            _note(axes, str(number), corner, (3, 2), FAINT)
            taken = place


def _note(axes: Axes, text: str, place: tuple[float, float], shift: tuple[int, int], colour: str, **how: Any) -> None:
    axes.annotate(text, place, shift, textcoords="offset points", color=colour, fontsize="x-small", **how)
