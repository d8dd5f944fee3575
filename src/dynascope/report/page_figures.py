"""The figures of a page: those that the tree declares, then every other quantity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from plotly.graph_objects import Figure

from dynascope import plot
from dynascope.plot import Chart, traces
from dynascope.plot.axes import is_power_law
from dynascope.plot.layout import lay_out
from dynascope.report.facts import naming_attribute
from dynascope.report.interactive import chart_plot, lines_figure, staircase_figure
from dynascope.report.staircase_words import seen_in_a_staircase
from dynascope.results import TreeView, describe

__all__ = ["PageFigure", "page_figures"]

_STAIRS = "The loss, from plateau to plateau"
_MOST_FIGURES = 24
_LEAST = 2000  # bytes, below which a figure does not shrink any more


class PageFigure(NamedTuple):
    """An interactive figure.

    Attributes:
        title: A few words.
        caption: What is seen and what it means.
        log_x: Whether its horizontal axis is logarithmic at first.
        log_y: Whether its vertical axis is.
        tall: Whether it has a second panel.
        content: Plotly's data and layout as JSON.
    """

    title: str
    caption: str
    log_x: bool
    log_y: bool
    tall: bool
    content: Markup


def page_figures(view: TreeView, room: int) -> tuple[list[PageFigure], list[PageFigure]]:
    """The figures that tell the story, and those of all other quantities.

    Args:
        view: The tree.
        room: About how many bytes they may take together.

    Returns:
        The declared figures, or the first that there is; and the others: the staircase, planes, curves.

    Raises:
        InputError: A declared figure names what the tree lacks.
    """
    with naming_attribute("figures"):
        charts = plot.from_attributes(view.attributes.get("figures", []))
    told = {name for chart in charts for name in _names(chart)}
    names = [name for name in traces.curve_names(view) if name not in told]
    staircase = view.staircase is not None and not any(chart.staircase for chart in charts)
    if staircase:
        names = [name for name in names if name != "loss"]
    planes = [pair for pair in traces.planes(view) if not set(pair) <= told and traces.plane(view, *pair)]
    count = len(charts) + staircase + len(planes) + len(names)
    # What a figure takes is known when it is made; mostly the first guess is enough.
    share = room // max(1, min(count, _MOST_FIGURES))
    while True:
        declared, rest = _drawn(view, charts, staircase, planes, names, share)
        if share < _LEAST or sum(len(each.content) for each in (*declared, *rest)) <= room:
            return (declared, rest) if declared else (rest[:1], rest[1:])
        share = int(0.7 * share)


def _drawn(
    view: TreeView,
    charts: Sequence[Chart],
    staircase: bool,
    planes: Sequence[tuple[str, str]],
    names: Sequence[str],
    share: int,
) -> tuple[list[PageFigure], list[PageFigure]]:
    with naming_attribute("figures"):
        declared = [_declared(view, chart, share) for chart in charts]
    rest = [_staircase(view, share)] if staircase else []
    rest += [_plane(view, x, y, share) for x, y in planes]
    rest += [_curve(view, name, share) for name in names[: max(0, _MOST_FIGURES - len(declared) - len(rest))]]
    return declared, rest


def _names(chart: Chart) -> set[str]:
    return {*chart.variables, chart.over, *(chart.interval or ()), *filter(None, [chart.error])}


def _declared(view: TreeView, chart: Chart, room: int) -> PageFigure:
    layout = lay_out(view, chart)
    jumps = [] if view.staircase is None else view.staircase.rows
    title = chart.title or (_STAIRS if chart.staircase else _sentence(layout.y_label or " and ".join(layout.labels)))
    caption = layout.caption or (seen_in_a_staircase(view) if chart.staircase else "")
    return _entry(title, caption, chart_plot(layout, jumps, room=room), layout.traces)


def _staircase(view: TreeView, room: int) -> PageFigure:
    lines = traces.staircase(view)
    jumps = [] if view.staircase is None else view.staircase.rows
    figure = staircase_figure(lines, jumps, room=room)
    return _entry(_STAIRS, seen_in_a_staircase(view), figure, lines)


def _plane(view: TreeView, x: str, y: str, room: int) -> PageFigure:
    lines = traces.plane(view, x, y)
    title = f"{lines[0].y_label or describe(y)[0]} against {lines[0].x_label or describe(x)[0]}"
    return _entry(_sentence(title), "", lines_figure(lines, y, room=room), lines)


def _curve(view: TreeView, name: str, room: int) -> PageFigure:
    lines = traces.curves(view, name)
    figure = lines_figure(lines, name, log_values=is_power_law(lines), room=room)
    return _entry(_sentence(lines[0].y_label or describe(name)[0]), "", figure, lines)


def _entry(title: str, caption: str, figure: Figure, lines: Sequence[traces.Trace]) -> PageFigure:
    caption = caption or f"{title}."
    sides = list(dict.fromkeys(line.side for line in lines))
    marks: list[Any] = list(figure.select_traces())
    own = " Dotted: predicted at this scale, no jump assumed." if sides.count(traces.AT_SCALE) else ""
    sides = [side for side in sides if side != traces.AT_SCALE]
    if len(sides) == 2:
        points = any(mark["mode"] == "markers" for mark in marks)
        bars = any(mark["marker"]["symbol"] == "line-ew-open" for mark in marks)
        arrows = any(mark["marker"]["symbol"] == "arrow" for mark in marks)
        seen = "Points" if points else "Arrows" if arrows else "Solid"
        caption += f" {seen}: observed. {'Bars' if bars else 'Dashed'}: predicted."
    else:
        caption += f" {sides[0].capitalize()} only."
    caption += own
    # What is drawn for a side has a name, and says how many lines it holds.
    drawn = sum(int(mark["meta"] or 1) for mark in marks if mark["name"])
    if drawn < len(lines):
        caption += f" Of {len(lines)} lines {drawn} are drawn."
    layout = figure.layout
    return PageFigure(
        title,
        caption,
        layout["xaxis"]["type"] == "log",
        layout["yaxis"]["type"] == "log",
        any(mark["yaxis"] == "y2" for mark in marks),
        # No "<" leaves the JSON, so no text in it can end the script element that holds it.
        Markup((figure.to_json() or "").replace("<", "\\u003c")),
    )


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]
