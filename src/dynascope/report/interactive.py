"""Plotly figures of lines, light enough for a page."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int

from dynascope.plot import traces
from dynascope.plot.axes import axis_label, is_logarithmic
from dynascope.record.staircase_view import Jump

__all__ = ["kept_points", "lines_figure", "staircase_figure"]

_MOST_POINTS = 2000
_MOST_POINTS_TOGETHER = 40_000
_MOST_LINES_A_SIDE = 100
_MOST_LEGEND_ENTRIES = 12


def staircase_figure(lines: Sequence[traces.Trace], jumps: Sequence[Jump]) -> go.Figure:
    """The observed loss, solid, and the predicted staircase, dashed, with what is learned at each jump on hovering.

    Args:
        lines: What `traces.staircase` found.
        jumps: The rows of the predicted staircase.
    """
    figure = lines_figure(lines, "loss")
    steps = _of_side(lines, "predicted")
    if len(steps) == 1:
        times, before, after = traces.corners(steps[0])
        learned = [f"<br>{html.escape(jump.learned)}" if jump.learned else "" for jump in jumps]
        figure.add_scatter(
            x=times,
            y=before,
            mode="markers+text",
            text=[str(number) for number in range(1, len(times) + 1)],
            textposition="top right",
            textfont={"size": 11},
            marker={"size": 5, "color": traces.PREDICTED},
            customdata=list(zip(times, before, after, learned, strict=False)),
            hovertemplate="jump %{text} at time %{customdata[0]:.4~g}, loss %{customdata[1]:.4~g} → "
            "%{customdata[2]:.4~g}%{customdata[3]}<extra></extra>",
            cliponaxis=False,
            showlegend=False,
        )
    return figure


def kept_points(x: Float[np.ndarray, " n"], most: int) -> Int[np.ndarray, " m"]:
    """Which points of a curve to keep: half of them even in x, half even in its logarithm, and both ends.

    A curve thinned in this way keeps its shape on a linear and on a logarithmic axis.

    Args:
        x: Increasing.
        most: How many points may be kept, at least 4.

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


def lines_figure(lines: Sequence[traces.Trace], name: str, *, log_values: bool = False) -> go.Figure:
    """Curves or paths, solid where observed and dashed where predicted, one colour for each member.

    Args:
        lines: What `traces` found; they share an axis.
        name: The variable that runs upwards.
        log_values: Whether its axis is logarithmic.
    """
    labels = list(dict.fromkeys(line.label for line in lines))
    figure = go.Figure(layout=_layout(lines[0].axis, name, is_logarithmic(lines), log_values))
    drawn = [line for side in ("observed", "predicted") for line in _of_side(lines, side)[:_MOST_LINES_A_SIDE]]
    most = int(np.clip(_MOST_POINTS_TOGETHER // len(drawn), 200, _MOST_POINTS))
    entries = set()
    for line in drawn:
        rising = len(line.x) < 2 or bool(np.all(np.diff(line.x) > 0))
        # A path in a plane may turn back; it is thinned evenly along itself.
        kept = kept_points(line.x if rising else np.arange(float(len(line.x))), most)
        entry = html.escape(line.label) if len(labels) > 1 else line.side
        figure.add_scatter(
            x=_rounded(line.x[kept]),
            y=_rounded(line.y[kept]),
            mode="lines",
            name=entry,
            legendgroup=entry,
            showlegend=entry not in entries and len(labels) <= _MOST_LEGEND_ENTRIES,
            line=_stroke(line, pale=len(labels) > 1),
            opacity=0.8 if not line.alone else 0.55 if line.side == "observed" and len(labels) > 1 else 1.0,
            hovertemplate=f"{entry}, {line.side}<br>%{{x:.4~g}}, %{{y:.4~g}}<extra></extra>",
        )
        entries.add(entry)
    return figure


def _of_side(lines: Sequence[traces.Trace], side: str) -> list[traces.Trace]:
    return [line for line in lines if line.side == side]


def _stroke(line: traces.Trace, *, pale: bool) -> dict[str, object]:
    if line.side == "predicted":
        return {"color": line.colour, "dash": "6px,3px", "width": 2 if line.alone else 1}
    return {"color": line.colour, "width": 1 if not line.alone else 4.5 if pale else 2.5}


def _layout(axis: str, name: str, log_axis: bool, log_values: bool) -> dict[str, object]:
    return {
        "template": "none",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "margin": {"l": 64, "r": 12, "t": 36, "b": 52},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "hovermode": "closest",
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "#8a929a", "activecolor": "#0072b2"},
        "xaxis": {
            "title": {"text": axis_label(axis)},
            "type": "log" if log_axis else "linear",
            "zeroline": False,
            "exponentformat": "power",
        },
        "yaxis": {
            "title": {"text": html.escape(axis_label(name))},
            "type": "log" if log_values else "linear",
            "zeroline": False,
            "exponentformat": "power",
        },
    }


def _rounded(values: Float[np.ndarray, " n"]) -> list[float | None]:
    """Six significant digits, which no screen can tell from more; nothing where the value is not finite."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values]
