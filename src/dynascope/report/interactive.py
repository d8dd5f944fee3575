"""Plotly figures of lines, light enough for a page.

Numbers are written in base64 with seven digits, which no screen can tell from more and which take half the room of
decimals; members of an ensemble share one trace with gaps between them.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int

from dynascope.plot import traces
from dynascope.plot.axes import axis_label, count_ticks, is_crowded, is_logarithmic
from dynascope.plot.layout import MOST_IN_A_LEGEND, Layout, Series, direct_labels
from dynascope.report.frame import Span, frame
from dynascope.results.staircase_view import Jump

__all__ = ["chart_plot", "kept_points", "lines_figure", "staircase_figure"]

_MOST_POINTS = 2000
_MOST_LINES_A_SIDE = 100
_BYTES = 200_000  # of one figure, if nothing else is said
_BYTES_A_POINT = 12
_BYTES_A_TRACE = 700
_LETTERS = 24  # of a name at the end of a line
_BAR = {"symbol": "line-ew-open", "size": 24, "line": {"width": 2.5}}  # a prediction at a name
_HEAD = 9  # pixels of the head of an arrow
_FLOATS = (1e-37, 1e38)  # sizes that single precision keeps


class _Scale(NamedTuple):
    """Which axes are logarithmic."""

    x: bool
    y: bool


def lines_figure(
    lines: Sequence[traces.Trace],
    name: str,
    *,
    log_time: bool = False,
    log_values: bool = False,
    room: int = _BYTES,
) -> go.Figure:
    """Curves or paths, solid where observed and dashed where predicted, one colour for each member.

    Args:
        lines: What `traces` found; they share an axis.
        name: The variable that runs upwards.
        log_time: Whether the horizontal axis is logarithmic, as it is anyway where its points keep a ratio.
        log_values: Whether the vertical axis is.
        room: About how many bytes it may take.
    """
    scale = _Scale(log_time or is_logarithmic(lines), log_values)
    words = lines[0].x_label or axis_label(lines[0].axis), lines[0].y_label or axis_label(name)
    return _drawn([Series(line) for line in lines], words, scale, room)


def staircase_figure(lines: Sequence[traces.Trace], jumps: Sequence[Jump], *, room: int = _BYTES) -> go.Figure:
    """The observed loss, solid, and the predicted staircase, dashed, with what is learned at each jump on hovering.

    Args:
        lines: What `traces.staircase` found.
        jumps: The rows of the predicted staircase.
        room: About how many bytes it may take.
    """
    crowded = is_crowded(lines)
    if crowded:
        # A logarithmic axis would begin at the first recorded time, decades before anything happens.
        lines = [_from_first_jump(line, lines) for line in lines]
    figure = lines_figure(lines, "loss", log_time=crowded, room=room)
    _number_jumps(figure, lines, jumps)
    return figure


def chart_plot(layout: Layout, jumps: Sequence[Jump] = (), *, room: int = _BYTES) -> go.Figure:
    """A declared chart.

    Args:
        layout: What the chart shows.
        jumps: The rows of the predicted staircase, for a chart that draws one.
        room: About how many bytes it may take.
    """
    chart = layout.chart
    scale = _Scale("x" in chart.log, "y" in chart.log)
    figure = _drawn(layout.series, (layout.x_label, layout.y_label), scale, room, layout=layout)
    if chart.staircase:
        _number_jumps(figure, layout.traces, jumps)
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


def _drawn(
    series: Sequence[Series], words: tuple[str, str], scale: _Scale, room: int, layout: Layout | None = None
) -> go.Figure:
    labels = list(dict.fromkeys(each.trace.label for each in series))
    points = layout is not None and layout.points
    by_name = layout is not None and layout.named
    residual = () if layout is None else layout.residual
    named = direct_labels([each.trace for each in series], log_y=scale.y) if len(labels) > MOST_IN_A_LEGEND else []
    longest = max((len(label) for _, _, label, _ in named), default=0)
    spans = _spans([each.trace for each in series])
    counted = {} if scale.x else count_ticks([each.trace for each in series])
    ticks = counted if layout is None else layout.ticks
    figure = go.Figure(layout=frame(words, scale, spans, bool(residual), ticks, min(longest, _LETTERS)))
    shown = [each for side in traces.SIDES for each in _first_of(series, side, room)]
    most = int(np.clip((room - _BYTES_A_TRACE * len(shown)) / _BYTES_A_POINT / len(shown), 24, _MOST_POINTS))
    for each in shown:
        _add_interval(figure, each, scale, points=points)
    first = {each.trace.label: each.trace.side for each in reversed(shown)}
    for (side, label), members in _by_label(shown).items():
        entry = html.escape(label) if len(labels) > 1 else side
        lines = [each.trace for each in members]
        pale, alone = len(labels) > 1, lines[0].alone
        as_points = points and side == "observed"
        as_bar = by_name and side == "predicted"
        thinned = [_thinned(line, len(line.x) if as_points else most) for line in lines]
        bars = _bars(members) if as_points else {}
        arrows = layout is not None and layout.chart.arrows and side == "observed"
        figure.add_scatter(
            x=_with_gaps([x for x, _ in thinned]),
            y=_with_gaps([y for _, y in thinned]),
            mode="markers" if as_points or as_bar else "lines+markers" if arrows else "lines",
            name=entry,
            legendgroup=entry,
            meta=len(lines),
            showlegend=len(labels) == 1 or (len(labels) <= MOST_IN_A_LEGEND and side == first[label]),
            line=_stroke(lines[0]),
            marker={
                "color": lines[0].colour,
                **(_BAR if as_bar else _heads(thinned) if arrows else {"size": 7 if alone or by_name else 4}),
            },
            opacity=0.8 if not alone else 0.55 if side == "observed" and pale and not as_points else 1.0,
            hovertemplate=f"{entry}, {side}<br>%{{x:.4~g}}, %{{y:.4~g}}<extra></extra>",
            **bars,
        )
    for line in residual:
        x, y = _thinned(line, most)
        figure.add_scatter(x=_with_gaps([x]), y=_with_gaps([y]), mode="lines", yaxis="y2", showlegend=False)
        figure.data[-1].update(line={"color": line.colour, "width": 1.2}, hoverinfo="y")
    if named:
        _name_ends(figure, named)
    return figure


def _from_first_jump(line: traces.Trace, lines: Sequence[traces.Trace]) -> traces.Trace:
    """The line from a tenth of the time of the first predicted jump on."""
    first = min(corners[0] for each in lines if each.side == "predicted" for corners in [traces.corners(each)[0]])
    kept = line.x >= 0.0999 * first
    return line._replace(x=line.x[kept], y=line.y[kept])


def _spans(lines: Sequence[traces.Trace]) -> tuple[Span, Span]:
    """The decimal logarithms of the least and the largest positive number, across and upwards."""
    spans = []
    for parts in ([line.x for line in lines], [line.y for line in lines]):
        values = np.concatenate(parts)
        positive = values[np.isfinite(values) & (values > 0)]
        least, largest = (positive.min(), positive.max()) if len(positive) else (1.0, 1.0)
        spans.append((float(np.log10(least)), float(np.log10(largest))))
    return spans[0], spans[1]


def _first_of(series: Sequence[Series], side: str, room: int) -> list[Series]:
    """As many lines of a side as there is room for; all members of an ensemble cost one trace."""
    of_side = [each for each in series if each.trace.side == side]
    labels = list(dict.fromkeys(each.trace.label for each in of_side))[: max(4, room // (4 * _BYTES_A_TRACE))]
    kept = [each for each in of_side if each.trace.label in labels]
    return kept[: min(_MOST_LINES_A_SIDE, max(4, room // (48 * _BYTES_A_POINT)))]


def _by_label(series: Sequence[Series]) -> dict[tuple[str, str], list[Series]]:
    groups: dict[tuple[str, str], list[Series]] = {}
    for each in series:
        groups.setdefault((each.trace.side, each.trace.label), []).append(each)
    return groups


def _thinned(line: traces.Trace, most: int) -> tuple[np.ndarray, np.ndarray]:
    rising = len(line.x) < 2 or bool(np.all(np.diff(line.x) > 0))
    # A path in a plane may turn back; it is thinned evenly along itself.
    kept = kept_points(line.x if rising else np.arange(float(len(line.x))), most)
    return line.x[kept], line.y[kept]


def _with_gaps(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The parts after each other, with a gap between two; what is not finite is a gap too."""
    joined = np.concatenate([np.append(part, np.nan) for part in parts])[:-1]
    joined = np.where(np.isfinite(joined), joined, np.nan)
    sizes = np.abs(joined[np.nonzero(joined)])
    safe = bool(np.all((sizes > _FLOATS[0]) & (sizes < _FLOATS[1]) | np.isnan(sizes)))
    return joined.astype(np.float32) if safe else joined


def _heads(paths: Sequence[tuple[np.ndarray, np.ndarray]]) -> dict[str, Any]:
    """Marks that are seen at the end of each path alone, and point where it goes."""
    sizes = np.concatenate([np.append(np.zeros(len(x) - 1), [_HEAD, 0]) for x, _ in paths])[:-1]
    return {"symbol": "arrow", "angleref": "previous", "size": sizes, "opacity": 1, "line": {"width": 0}}


def _bars(members: Sequence[Series]) -> dict[str, Any]:
    if members[0].low is None or any(each.low is None or each.high is None for each in members):
        return {}
    above = _with_gaps([np.asarray(each.high) - each.trace.y for each in members])
    below = _with_gaps([each.trace.y - np.asarray(each.low) for each in members])
    return {"error_y": {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "thickness": 1}}


def _add_interval(figure: go.Figure, each: Series, scale: _Scale, *, points: bool) -> None:
    """A band, drawn as one outline that goes along its high end and back along its low end."""
    line = each.trace
    if each.low is None or each.high is None or (points and line.side == "observed"):
        return
    kept = np.isfinite(each.low) & np.isfinite(each.high) & ((each.low > 0) | (not scale.y))
    x, low, high = line.x[kept], each.low[kept], each.high[kept]
    thin = kept_points(x, 200) if len(x) > 200 and np.all(np.diff(x) > 0) else np.arange(len(x))
    figure.add_scatter(
        x=_with_gaps([np.concatenate([x[thin], x[thin][::-1]])]),
        y=_with_gaps([np.concatenate([high[thin], low[thin][::-1]])]),
        mode="lines",
        line={"width": 0, "color": line.colour},
        fill="toself",
        opacity=0.25,
        hoverinfo="skip",
        showlegend=False,
    )


def _stroke(line: traces.Trace) -> dict[str, object]:
    if line.side == "predicted":
        return {"color": line.colour, "dash": "6px,3px", "width": 2 if line.alone else 1}
    if line.side == traces.AT_SCALE:
        return {"color": line.colour, "dash": "2px,3px", "width": 2}
    # Broad enough that the dashes of a prediction upon it are seen where both coincide.
    return {"color": line.colour, "width": 1 if not line.alone else 4.5}


def _number_jumps(figure: go.Figure, lines: Sequence[traces.Trace], jumps: Sequence[Jump]) -> None:
    steps = [line for line in lines if line.side == "predicted"]
    if len(steps) != 1:
        return
    times, before, after = traces.corners(steps[0])
    learned = [f"<br>{html.escape(jump.learned)}" if jump.learned else "" for jump in jumps]
    figure.add_scatter(
        x=times,
        y=before,
        mode="markers+text",
        text=[str(number) for number in range(1, len(times) + 1)],
        textposition="top right",
        textfont={"size": 11, "color": traces.FAINT},
        marker={"size": 5, "color": traces.PREDICTED},
        customdata=list(zip(times, before, after, learned, strict=False)),
        hovertemplate="jump %{text} at time %{customdata[0]:.4~g}, loss %{customdata[1]:.4~g} → "
        "%{customdata[2]:.4~g}%{customdata[3]}<extra></extra>",
        cliponaxis=False,
        showlegend=False,
    )


def _name_ends(figure: go.Figure, named: Sequence[tuple[float, float, str, str]]) -> None:
    """Write each name at the end of its line, in its colour."""
    x, y, labels, colours = zip(*named, strict=True)
    figure.add_scatter(
        x=x,
        y=y,
        mode="text",
        text=[html.escape(each if len(each) <= _LETTERS else f"{each[: _LETTERS - 1]}…") for each in labels],
        textposition="middle right",
        textfont={"size": 11, "color": colours},
        cliponaxis=False,
        hoverinfo="skip",
        showlegend=False,
    )
