"""The figures of a page: those that the tree declares, then every other quantity."""

from __future__ import annotations

from typing import NamedTuple

from markupsafe import Markup

from dynascope.plot.drawing import Drawing, describe_chart, undeclared
from dynascope.plot.lines import AT_SCALE, is_path
from dynascope.report.plotly_figure import plotly_figure
from dynascope.report.staircase_text import seen_in_a_staircase
from dynascope.report.thinning import thinned
from dynascope.results import Result

__all__ = ["PageFigure", "page_figures"]

_STAIRS = "The loss, from plateau to plateau"
_MOST_FIGURES = 24
_LEAST = 2000  # bytes, below which a figure does not shrink any more
_STYLES = {
    **{"solid": "Solid", "dashed": "Dashed", "dotted": "Dotted"},
    **{"points": "Points", "dots": "Points", "arrow": "Arrows", "bars": "Bars"},
}


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


def page_figures(view: Result, room: int) -> tuple[list[PageFigure], list[PageFigure]]:
    """The figures that tell the story, and those of all other quantities.

    Args:
        view: The tree.
        room: About how many bytes they may take together.

    Returns:
        The declared figures, or the first that there is; and the others: the staircase, curves.

    Raises:
        InputError: A declared figure names what the tree lacks.
    """
    declared = [describe_chart(view, chart) for chart in view.charts]
    drawings = [*declared, *undeclared(view, view.charts)][: max(len(declared), _MOST_FIGURES)]
    # The size of a figure is known when it is made; mostly the first guess is enough.
    share = room // max(1, len(drawings))
    while True:
        figures = [_figure(view, drawing, share) for drawing in drawings]
        if share < _LEAST or sum(len(each.content) for each in figures) <= room:
            first = len(declared) or 1
            return figures[:first], figures[first:]
        share = int(0.7 * share)


def _figure(view: Result, drawing: Drawing, room: int) -> PageFigure:
    lighter = thinned(drawing, room)
    title, main = _title(view, drawing), drawing.panels[0]
    caption = drawing.chart.caption or (seen_in_a_staircase(view) if drawing.chart.staircase else f"{title}.")
    caption = caption if caption.endswith((".", "?", "!")) else f"{caption}."
    styles = {line.side: _STYLES[line.style] for line in main.lines}
    scale = styles.pop(AT_SCALE, "")
    if len(styles) == 2:
        caption += f" {styles['observed']}: observed. {styles['predicted']}: predicted."
    else:
        caption += f" {next(iter(styles)).capitalize()} only."
    caption += f" {scale}: predicted at this scale, no jump assumed." if scale else ""
    count, drawn = len(main.lines), len(lighter.panels[0].lines)
    caption += f" Of {count} lines {drawn} are drawn." if drawn < count else ""
    # No "<" leaves the JSON, so no text in it can end the script element that holds it.
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
