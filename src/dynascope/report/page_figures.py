"""The figures of a page: the declared charts, followed by all other quantities."""

from __future__ import annotations

from typing import NamedTuple

from markupsafe import Markup

from dynascope.plot.drawing import Drawing, describe_chart, undeclared
from dynascope.plot.lines import AT_SCALE, is_path
from dynascope.report.plotly_figure import plotly_figure
from dynascope.report.staircase_text import staircase_caption
from dynascope.report.thinning import thinned
from dynascope.results import Result

__all__ = ["PageFigure", "page_figures"]

_STAIRS = "Loss over time"
_MOST_FIGURES = 24
_LEAST = 2000  # bytes; smaller figures are not reduced further
_STYLES = {
    **{"solid": "Solid", "marked": "Points", "dashed": "Dashed", "dotted": "Dotted"},
    **{"points": "Points", "dots": "Points", "arrow": "Arrows", "bars": "Bars"},
}


class PageFigure(NamedTuple):
    """An interactive figure.

    Attributes:
        title: Heading of the figure.
        caption: Caption of the figure.
        log_x: Whether the x-axis is logarithmic initially.
        log_y: Whether the y-axis is logarithmic initially.
        tall: Whether the figure has a second panel.
        content: Data and layout for plotly as JSON.
    """

    title: str
    caption: str
    log_x: bool
    log_y: bool
    tall: bool
    content: Markup


def page_figures(view: Result, room: int) -> tuple[list[PageFigure], list[PageFigure]]:
    """Return the main figures, and the figures of all other quantities.

    Args:
        view: The result.
        room: Approximate limit on the total size of all figures, in bytes.

    Returns:
        The declared figures, and the figures of all other quantities. If no figure is declared, the first of the others
        becomes the main figure.

    Raises:
        InputError: A declared chart names a variable that the result lacks.
    """
    declared = [describe_chart(view, chart) for chart in view.charts]
    drawings = [*declared, *undeclared(view, view.charts)][: max(len(declared), _MOST_FIGURES)]
    # The size of a figure is known only after rendering. Most figures are small, so the others may take more than an
    # equal share.
    share = 4 * room // max(1, len(drawings))
    while True:
        figures = [_figure(view, drawing, share) for drawing in drawings]
        size = sum(len(each.content) for each in figures)
        if share < _LEAST or size <= room:
            first = len(declared) or 1
            return figures[:first], figures[first:]
        share = int(min(0.7, room / size) * share)


def _figure(view: Result, drawing: Drawing, room: int) -> PageFigure:
    lighter = thinned(drawing, room)
    title, main = _title(view, drawing), drawing.panels[0]
    caption = drawing.chart.caption or (staircase_caption(view) if drawing.chart.staircase else f"{title}.")
    caption = caption if caption.endswith((".", "?", "!")) else f"{caption}."
    styles = {line.side: _STYLES[line.style] for line in main.lines}
    scale = styles.pop(AT_SCALE, "")
    if len(styles) == 2:
        caption += f" {styles['observed']}: observed. {styles['predicted']}: predicted."
    elif len(view.sides) == 2:
        caption += f" {next(iter(styles)).capitalize()} only."
    caption += f" {scale}: predicted loss curve at this scale." if scale else ""
    count, drawn = len(main.lines), len(lighter.panels[0].lines)
    caption += f" Only {drawn} of {count} lines are drawn." if drawn < count else ""
    # Escape "<", so that no text in the JSON can end the surrounding script element.
    content = Markup((plotly_figure(lighter).to_json() or "").replace("<", "\\u003c"))
    return PageFigure(title, caption, drawing.x.log, main.y.log, len(drawing.panels) > 1, content)


def _title(view: Result, drawing: Drawing) -> str:
    chart, main = drawing.chart, drawing.panels[0]
    if chart.title or chart.staircase:
        return chart.title or _STAIRS
    words = main.y.label or " and ".join(dict.fromkeys(line.label for line in main.lines))
    return _sentence(f"{words} against {drawing.x.label}" if is_path(view, chart) else words)


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]
