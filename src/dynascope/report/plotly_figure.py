"""Convert the description of a figure to a compact plotly figure.

Numbers are encoded in base64, in single precision if their magnitudes allow; this takes half the space of decimal text.
Lines with the same label share one trace, separated by gaps.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from dynascope.plot.drawing import Axis, Drawing, Panel
from dynascope.plot.lines import FAINT, PREDICTED, Line

Values: TypeAlias = Float[np.ndarray, " n"]

__all__ = ["plotly_figure"]

_LETTERS = 24  # characters of a label at the end of a line
_LETTER = 6.5  # pixels per character
_IN_A_ROW = 40  # characters of tick labels that fit side by side
_DECADES = 2.5  # minimum number of decades for ticks at powers of ten only
_FEW_DIGITS = 0.7  # maximum number of decades for a tick at every digit
_PLAIN = (-4.0, 6.0)  # powers of ten between which numbers are written without exponent
_FLOATS = (1e-37, 1e38)  # range of magnitudes in single precision
_ALONE = 2.5  # pixels, the width of a solid line without predictions
_SOLID = {"width": 4.5}  # broad enough that the dashes of a coinciding prediction are visible on it
_LOOKS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "solid": ("lines", _SOLID, {}),
    "marked": ("lines+markers", {"width": 2}, {"size": 6}),
    "arrow": (
        "lines+markers",
        _SOLID,
        {"symbol": "arrow", "angleref": "previous", "opacity": 1, "line": {"width": 0}},
    ),
    "dashed": ("lines", {"width": 2, "dash": "6px,3px"}, {}),
    "dotted": ("lines", {"width": 2, "dash": "3px,5px"}, {}),
    "points": ("markers", {}, {"size": 7}),
    "dots": ("markers", {}, {"size": 4}),
    "bars": ("markers", {}, {"size": 24, "symbol": "line-ew-open", "line": {"width": 2.5}}),
}
_HEAD = 9  # size of an arrow head in pixels
_OPACITIES = {"full": 1.0, "pale": 0.55, "thin": 0.8}


def plotly_figure(drawing: Drawing) -> go.Figure:
    """Return the plotly figure of a drawing.

    Example:
        >>> from dynascope.results import Chart
        >>> from dynascope.plot.drawing import describe_chart
        >>> from dynascope.results import make_record
        >>> record = make_record({"loss": (["time"], [1.0, 0.1])}, {"time": [0.0, 1.0]})
        >>> plotly_figure(describe_chart(record, Chart("loss", log="y"))).layout.yaxis.type
        'log'
    """
    main, *below = drawing.panels
    figure = go.Figure(layout=_layout(drawing))
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in main.lines:
        groups.setdefault((line.side, line.label), []).append(line)
        if line.low is not None and line.high is not None and not line.has_error_bars:
            _add_band(figure, line.x, line.low, line.high, line.colour, log_y=main.y.log)
    shown: dict[str, str] = {}
    for (side, label), lines in groups.items():
        first = shown.setdefault(label, side) == side
        _add_lines(figure, main, lines, in_legend=first if main.legend else not main.ends)
    for line in itertools.chain(*(panel.lines for panel in below)):
        _add(
            figure,
            line.x,
            line.y,
            "lines",
            yaxis="y2",
            line={"color": line.colour, "width": 1.2, "simplify": False},
            hoverinfo="y",
        )
    if main.starts:
        x, y, colours = zip(*((line.x[0], line.y[0], line.colour) for line in main.lines), strict=True)
        _add(figure, x, y, "markers", marker={"size": 6, "color": colours}, hoverinfo="skip")
    if main.ends:
        x, y, labels, colours = zip(*main.ends, strict=True)
        _add_text(figure, x, y, [_short(each) for each in labels], "text", "middle right", colours, hoverinfo="skip")
    if main.jumps:
        _add_jumps(figure, main)
    if main.legend or main.ends:
        _add_sides(figure, main)
    return figure


def _add_band(figure: go.Figure, x: Values, low: Values, high: Values, colour: str, *, log_y: bool) -> None:
    """Add a band as one outline, along its upper end and back along its lower end."""
    kept = np.isfinite(low) & np.isfinite(high) & ((low > 0) | (not log_y))
    across, along = (np.concatenate([there[kept], back[kept][::-1]]) for there, back in ((x, x), (high, low)))
    line = {"width": 0, "color": colour}
    _add(figure, across, along, "lines", line=line, fill="toself", opacity=0.25, hoverinfo="skip")


def _add_sides(figure: go.Figure, panel: Panel) -> None:
    """Add legend entries for the line styles of observation and prediction if colours distinguish the members."""
    first: dict[str, Line] = {}
    for line in panel.lines:
        first.setdefault(line.side, line)
    for side, line in first.items() if len(first) > 1 else ():
        mode, stroke, marker = _LOOKS[line.style]
        styles = {"line": {"color": FAINT, **stroke}, "marker": {"color": FAINT, **marker}}
        _add(figure, [np.nan], [np.nan], mode, name=side, showlegend=True, legendrank=1, hoverinfo="skip", **styles)


def _add_lines(figure: go.Figure, panel: Panel, lines: Sequence[Line], *, in_legend: bool) -> None:
    """Add the lines of one side and label as one trace."""
    first = lines[0]
    mode, stroke, marker = _LOOKS[first.style]
    if first.weight == "thin":
        stroke = {**stroke, "width": 1}
    elif first.style == "solid" and all(line.side == first.side for line in panel.lines):
        stroke = {**stroke, "width": _ALONE}
    if first.style == "arrow":
        # Only the head of each path is visible.
        sizes = [np.append(np.zeros(len(line.x) - 1), _HEAD) for line in lines]
        marker = {**marker, "size": np.nan_to_num(_joined(sizes))}
    name = html.escape(first.label) if panel.legend or panel.ends else first.side
    _add(
        figure,
        _joined([line.x for line in lines]),
        _joined([line.y for line in lines]),
        mode,
        name=name,
        legendgroup=name,
        showlegend=in_legend,
        meta=len(lines),
        # By default, plotly simplifies lines until they are visibly polygons.
        line={"color": first.colour, "simplify": False, **stroke},
        marker={"color": first.colour, **marker},
        opacity=_OPACITIES[first.weight],
        hovertemplate=f"{name}, {first.side}<br>%{{x:.4~g}}, %{{y:.4~g}}<extra></extra>",
    )
    if all(line.has_error_bars for line in lines):
        above = _joined([np.asarray(line.high) - line.y for line in lines])
        below = _joined([line.y - np.asarray(line.low) for line in lines])
        bars = {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "thickness": 1}
        figure.data[-1].update(error_y=bars)


def _add_jumps(figure: go.Figure, panel: Panel) -> None:
    x, before, after, learned = zip(*panel.jumps, strict=True)
    learned = [each and f"<br>{html.escape(each)}" for each in learned]
    numbers = [str(number + 1) for number in range(len(x))]
    _add_text(figure, x, before, numbers, "markers+text", "top right", FAINT)
    figure.data[-1].update(
        marker={"size": 5, "color": PREDICTED},
        customdata=list(zip(x, before, after, learned, strict=True)),
        hovertemplate="jump %{text} at time %{customdata[0]:.4~g}, loss %{customdata[1]:.4~g} → "
        "%{customdata[2]:.4~g}%{customdata[3]}<extra></extra>",
    )


def _short(label: str) -> str:
    """Shorten a long label in its middle, since names of parameters differ at both ends."""
    half = _LETTERS // 2
    return label if len(label) <= _LETTERS else f"{label[: half - 1]}…{label[-half:]}"


def _add_text(
    figure: go.Figure, x: Any, y: Any, text: list[str], mode: str, place: str, colour: Any, **how: Any
) -> None:
    text, font = [html.escape(each) for each in text], {"size": 11, "color": colour}
    _add(figure, x, y, mode, text=text, textposition=place, textfont=font, cliponaxis=False, **how)


def _add(figure: go.Figure, x: Any, y: Any, mode: str, **how: Any) -> None:
    figure.add_scatter(**{"x": _joined([x]), "y": _joined([y]), "mode": mode, "showlegend": False, **how})


def _joined(parts: Sequence[Any]) -> Values:
    """Concatenate the parts, separated by gaps; non-finite numbers also become gaps."""
    joined = np.concatenate([np.append(part, np.nan) for part in parts])[:-1]
    joined = np.where(np.isfinite(joined), joined, np.nan)
    sizes = np.abs(joined[np.nonzero(joined)])
    safe = bool(np.all((sizes > _FLOATS[0]) & (sizes < _FLOATS[1]) | np.isnan(sizes)))
    return joined.astype(np.float32) if safe else joined


def _layout(drawing: Drawing) -> dict[str, Any]:
    """Return axes, legend and margins."""
    main, *below = drawing.panels
    letters = min(_LETTERS, max((len(end.text) for end in main.ends), default=0))
    layout = {
        "template": "none",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "margin": {"l": 56, "r": 14 + int(_LETTER * letters), "t": 36, "b": 48},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "hovermode": "closest",
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "#8a929a", "activecolor": "#0072b2"},
        "xaxis": _axis(drawing.x),
        "yaxis": _axis(main.y),
    }
    for panel in below:
        layout["yaxis"]["domain"] = [0.34, 1.0]
        layout["yaxis2"] = {**_axis(panel.y), "domain": [0.0, 0.22], "nticks": 5}
        layout["xaxis"]["anchor"] = "y2"
    return layout


def _axis(axis: Axis) -> dict[str, Any]:
    least, largest = axis.decades
    decades = largest - least
    # A linear axis from 0 to 10⁴ would otherwise be labelled 0.2×10⁴, 0.4×10⁴, ….
    plain = _PLAIN[0] <= (least if axis.log else largest) and largest <= _PLAIN[1]
    # With automargin, the title does not overlap tick labels of any length.
    layout = {
        "title": {"text": html.escape(axis.label), "standoff": 10},
        "type": "log" if axis.log else "linear",
        "zeroline": axis.zero,
        "exponentformat": "none" if plain and (decades <= _DECADES or not axis.log) else "power",
        "automargin": True,
        "minorloglabels": "complete" if decades <= _DECADES else "none",
    }
    if axis.log and _FEW_DIGITS < decades <= _DECADES:
        # If there are few powers of ten, ticks at 2 and 5 are added, or at every digit if there is hardly a power.
        layout["dtick"] = "D2"
    elif axis.log and decades == 0:
        # For a single number, plotly would draw two powers with overlapping labels.
        layout |= {"dtick": "D2", "range": [least - 0.5, least + 0.5]}
    if axis.ticks:
        texts = [html.escape(each) for each in axis.ticks.values()]
        layout |= {"tickvals": list(axis.ticks), "ticktext": texts, "type": "linear"}
    if axis.range:
        # Text labels need space beside the first and the last position, or plotly omits them.
        layout |= {"range": list(axis.range), "ticklabeloverflow": "allow"}
    if sum(map(len, axis.ticks.values())) > _IN_A_ROW:
        # A label tilted to the left cannot extend beyond the right edge.
        layout["tickangle"] = -30
    return layout
