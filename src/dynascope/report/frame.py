"""Axes, legend and margins of the figures on a page."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any, TypeAlias

__all__ = ["Span", "frame"]

Span: TypeAlias = tuple[float, float]

_DECADES = 2.5  # from which on two powers of ten are on an axis
_FEW_DIGITS = 0.7  # decades, up to which every digit has room
_PLAIN = (-4.0, 6.0)  # powers of ten between which numbers are written out
_IN_A_ROW = 40  # letters of names that have room side by side
_LETTER = 6.5  # pixels that a letter of a name takes


def frame(
    words: tuple[str, str],
    log: tuple[bool, bool],
    spans: tuple[Span, Span],
    residual: bool,
    ticks: Mapping[float, str],
    letters: int,
) -> dict[str, Any]:
    """The layout of a figure.

    Args:
        words: What is written along the horizontal and the vertical axis.
        log: Which of them is logarithmic.
        spans: The logarithms of the least and the largest positive number along each.
        residual: Whether a panel of residuals stands below.
        ticks: The label at each place of a horizontal axis that has a few labels.
        letters: Of the longest name at the end of a line.
    """
    layout = {
        "template": "none",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "margin": {"l": 56, "r": 14 + int(_LETTER * letters), "t": 36, "b": 48},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "hovermode": "closest",
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "#8a929a", "activecolor": "#0072b2"},
        "xaxis": _axis(words[0], log[0], spans[0]),
        "yaxis": _axis(words[1], log[1], spans[1]),
    }
    if ticks:
        texts = [html.escape(each) for each in ticks.values()]
        layout["xaxis"] |= {"tickvals": list(ticks), "ticktext": texts, "type": "linear"}
        if texts != [str(place) for place in ticks]:
            # Words need room beside the first and the last place, or they are left out.
            layout["xaxis"] |= {"range": [min(ticks) - 0.5, max(ticks) + 0.5], "ticklabeloverflow": "allow"}
        if sum(map(len, ticks.values())) > _IN_A_ROW:
            # What leans to the left does not leave the figure on the right.
            layout["xaxis"]["tickangle"] = -30
    if residual:
        layout["yaxis"]["domain"] = [0.34, 1.0]
        layout["yaxis2"] = {**_axis("difference", False), "domain": [0.0, 0.22], "nticks": 5, "zeroline": True}
        layout["xaxis"]["anchor"] = "y2"
    return layout


def _axis(words: str, log: bool, span: Span = (0.0, 0.0)) -> dict[str, Any]:
    decades = span[1] - span[0]
    plain = log and _PLAIN[0] <= span[0] and span[1] <= _PLAIN[1]
    # Between few powers of ten the numbers 2 and 5 are written too, and every one where there is hardly a power.
    steps: dict[str, Any] = {"dtick": "D2"} if log and _FEW_DIGITS < decades <= _DECADES else {}
    if log and decades == 0:
        # Around a single number plotly draws two powers, whose numbers would lie over each other.
        steps = {"dtick": "D2", "range": [span[0] - 0.5, span[0] + 0.5]}
    # With automargin the title keeps clear of the numbers, however long they are.
    return {
        "title": {"text": html.escape(words), "standoff": 10},
        "type": "log" if log else "linear",
        "zeroline": False,
        "exponentformat": "none" if plain and decades <= _DECADES else "power",
        "automargin": True,
        "minorloglabels": "complete" if decades <= _DECADES else "none",
        **steps,
    }
