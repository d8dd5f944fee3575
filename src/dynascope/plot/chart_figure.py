"""Declared charts, drawn for files."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from dynascope.plot.axes import literal
from dynascope.plot.chart import Chart
from dynascope.plot.layout import Layout, lay_out
from dynascope.plot.style import BAR, name_lines, number_jumps, stroke, styled
from dynascope.results.tree_view import Tree

__all__ = ["chart_height", "draw_chart"]

_WIDTH = 7.2
_IN_A_ROW = 55  # letters of names that have room side by side
_LETTERS = 105  # of a caption in one line


def draw_chart(tree: Tree, chart: Chart, figure: Figure | SubFigure | None = None) -> Figure | SubFigure:
    """Draw a declared chart, with its caption below.

    Args:
        tree: What `compare` returns, or a record of one side alone.
        chart: The declaration.
        figure: What to draw on; by default a new figure.

    Returns:
        The figure.

    Raises:
        InputError: The tree lacks something that the chart or its caption names.

    Example:
        >>> from dynascope.results import make_record
        >>> record = make_record({"loss": (["time"], [1.0, 0.1])}, {"time": [0.0, 1.0]})
        >>> draw_chart(record, Chart("loss", log="y")).axes[0].get_yscale()
        'log'
    """
    layout = lay_out(tree, chart)
    figure = figure or Figure(figsize=(_WIDTH, chart_height(chart)), layout="constrained")
    panels: list[Axes] = list(
        figure.subplots(
            2 if layout.residual else 1,
            1,
            sharex=True,
            squeeze=False,
            height_ratios=[3, 1] if layout.residual else [1],
        )[:, 0]
    )
    _draw(styled(panels[0]), layout)
    if layout.residual:
        _draw_residual(styled(panels[1]), layout)
    panels[-1].set_xlabel(literal(layout.x_label))
    if layout.ticks:
        leaning = sum(map(len, layout.ticks.values())) > _IN_A_ROW
        words = [literal(each) for each in layout.ticks.values()]
        panels[-1].set_xticks(list(layout.ticks), words, rotation=20 * leaning, ha="right" if leaning else "center")
        panels[-1].set_xlim(min(layout.ticks) - 0.5, max(layout.ticks) + 0.5)
    if chart.title:
        panels[0].set_title(literal(chart.title), loc="left", fontsize="medium")
    if layout.caption:
        figure.supxlabel(literal(fill(layout.caption, _LETTERS)), x=0.01, ha="left", fontsize="small", color="#444444")
    return figure


def chart_height(chart: Chart) -> float:
    """Inches that a chart needs."""
    return 3.4 + 1.0 * chart.residual + 0.17 * (len(chart.caption) // _LETTERS + 1) * bool(chart.caption)


def _draw(axes: Axes, layout: Layout) -> None:
    chart = layout.chart
    crowded = len(layout.labels) > 1
    for each in layout.series:
        line = each.trace
        as_points = layout.points and line.side == "observed"
        if as_points:
            look = _points(line.alone or layout.named)
        else:
            look = BAR if layout.named else stroke(line.side, line.alone, crowded=crowded)
        axes.plot(line.x, line.y, color=line.colour, **look)
        if chart.arrows and line.side == "observed":
            head = {"arrowstyle": "-|>", "color": line.colour, "shrinkA": 0, "shrinkB": 0, "linewidth": 0}
            axes.annotate("", (line.x[-1], line.y[-1]), (line.x[-2], line.y[-2]), arrowprops=head)
        if each.low is None or each.high is None:
            continue
        if as_points:
            lengths = np.abs(np.stack([line.y - each.low, each.high - line.y]))
            axes.errorbar(line.x, line.y, lengths, fmt="none", ecolor=line.colour, elinewidth=1, capsize=2)
        else:
            axes.fill_between(line.x, each.low, each.high, color=line.colour, alpha=0.2, linewidth=0)
    axes.set(xscale="log" if "x" in chart.log else "linear", yscale="log" if "y" in chart.log else "linear")
    axes.set_ylabel(literal(layout.y_label))
    name_lines(axes, layout.traces, points=layout.points, bars=layout.named)
    steps = [line for line in layout.traces if line.side == "predicted"]
    if chart.staircase and len(steps) == 1:
        number_jumps(axes, steps[0])


def _points(large: bool) -> dict[str, Any]:
    return {"linestyle": "", "marker": "o", "markersize": 4.5 if large else 2.5, "zorder": 2}


def _draw_residual(axes: Axes, layout: Layout) -> None:
    axes.axhline(0, color="#bbbbbb", linewidth=0.8)
    for line in layout.residual:
        axes.plot(line.x, line.y, color=line.colour, linewidth=1.2 if line.alone else 0.6)
    axes.set_ylabel("difference", fontsize="small")
