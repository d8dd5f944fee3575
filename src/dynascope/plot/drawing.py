"""The backend-independent description of a figure: lines, axes and labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import xarray as xr
from scipy.optimize import isotonic_regression

from dynascope.plot.lines import AT_SCALE, Found, Line, curve_names, find_lines, is_path
from dynascope.results import Result, from_tree
from dynascope.results.chart import Chart, Log
from dynascope.results.tree import AnyResult

__all__ = ["Axis", "Drawing", "EndLabel", "Jump", "Panel", "describe_chart", "undeclared"]

_MOST_IN_A_LEGEND = 4
_MOST_TICKS = 12  # integers along an axis with a tick each
_APART = 0.055  # minimum distance of two labels, relative to the height of the axes
_UPON = 5e-4  # distance below which two lines look the same, relative to the height
_LOGARITHMIC = ("scaling_parameter", "scale", "learning_rate", "samples", "compute", "neurons")
_CLOCKS = ("time", "step", "sampled_step")
_RATIO = 100.0  # minimum ratio of the largest to the smallest x for a logarithmic axis
_STRAIGHT = 0.97  # minimum correlation of the logarithms for a power law


class EndLabel(NamedTuple):
    """A label at the end of a line."""

    x: float
    y: float
    text: str
    colour: str


class Jump(NamedTuple):
    """A numbered jump of a staircase: its time, the loss before and after it, and the learned feature."""

    x: float
    before: float
    after: float
    learned: str


@dataclasses.dataclass(frozen=True)
class Axis:
    """An axis.

    Attributes:
        label: The text along the axis.
        log: Whether the axis is logarithmic.
        decades: Decimal logarithms of the smallest and largest positive number along the axis.
        ticks: The tick labels by position, if there are few positions; otherwise empty.
        range: The two ends, or None to fit the data.
        zero: Whether a line marks zero.
    """

    label: str
    log: bool = False
    decades: tuple[float, float] = (0.0, 0.0)
    ticks: Mapping[int, str] = dataclasses.field(default_factory=dict)
    range: tuple[float, float] | None = None
    zero: bool = False


@dataclasses.dataclass(frozen=True)
class Panel:
    """Lines on a pair of axes.

    Attributes:
        lines: The lines.
        y: The vertical axis.
        legend: Labels in the legend, each with its colour.
        ends: Labels at the ends of the lines, if there are too many for a legend.
        jumps: Numbered jumps.
        starts: Whether a dot marks the start of each line.
    """

    lines: Sequence[Line]
    y: Axis
    legend: Mapping[str, str] = dataclasses.field(default_factory=dict)
    ends: Sequence[EndLabel] = ()
    jumps: Sequence[Jump] = ()
    starts: bool = False


@dataclasses.dataclass(frozen=True)
class Drawing:
    """A figure.

    Attributes:
        chart: The chart that is drawn.
        x: The horizontal axis of all panels.
        panels: The panels from top to bottom; those below the first are smaller.
    """

    chart: Chart
    x: Axis
    panels: tuple[Panel, ...]


def describe_chart(tree: AnyResult, chart: Chart, *, automatic: bool = False) -> Drawing:
    """Describe a chart of a result.

    Args:
        tree: The result or record.
        chart: The declared chart.
        automatic: Whether to choose logarithmic axes from the data, and to omit ensembles from a plane that also
            contains single paths.

    Raises:
        InputError: The tree lacks a variable or a member that the chart or its caption names, or a variable lacks the
            dimension that the chart names.

    Example:
        >>> from dynascope.results import make_record
        >>> record = make_record({"loss": (["samples"], [4.0, 2.0, 1.0])}, {"samples": [1, 10, 100]})
        >>> drawing = describe_chart(record, Chart("loss", over="samples", log="y"), automatic=True)
        >>> drawing.x.log, drawing.panels[0].y.log, drawing.panels[0].lines[0].style
        (True, True, 'solid')
    """
    view = from_tree(tree)
    found, path = find_lines(view, chart), is_path(view, chart)
    if automatic and path:
        found = found._replace(lines=[line for line in found.lines if not line.thin] or found.lines)
    log_x = "x" in chart.log or (automatic and _is_logarithmic(found))
    log_y = "y" in chart.log or (automatic and not chart.staircase and _is_power_law(found))
    colours = {line.label: line.colour for line in found.lines}
    lines = [_styled(line, chart, several=len(colours) > 1, named=bool(found.names)) for line in found.lines]
    ticks = dict(enumerate(found.names)) or ({} if log_x or path else _counted(found))
    ends = (-0.5, len(ticks) - 0.5) if found.names else None
    y_label = chart.y_label or ("" if len(chart.variables) > 1 else found.y_label)
    main = Panel(
        lines,
        Axis(y_label, log_y, _decades([line.y for line in lines])),
        legend=colours if 1 < len(colours) <= _MOST_IN_A_LEGEND else {},
        ends=_end_labels(lines, log_y) if len(colours) > _MOST_IN_A_LEGEND else [],
        jumps=_jumps(view, lines) if chart.staircase else [],
        starts=automatic and path,
    )
    x = Axis(chart.x_label or found.x_label, log_x, _decades([line.x for line in lines]), ticks, ends)
    below = (Panel(_residual(lines), Axis("difference", zero=True)),) if chart.residual else ()
    return Drawing(chart, x, (main, *below))


def undeclared(view: Result, charts: Sequence[Chart] = ()) -> list[Drawing]:
    """Describe the staircase, and all curves that have finite values and that no chart contains.

    If all charts have logarithmic x-axes or joined lines, so do these curves.
    """
    shown = {name for chart in charts for name in (*chart.variables, chart.over, *(chart.interval or ()), chart.error)}
    staircase = view.staircase is not None and not any(chart.staircase for chart in charts)
    names = [name for name in curve_names(view) if name not in shown and not (staircase and name == "loss")]
    log: Log = "x" if charts and all("x" in chart.log for chart in charts) else ""
    joined = bool(charts) and all(chart.joined for chart in charts)
    known = [name for name in names if any(_has_values(record, name) for record in view.sides.values())]
    drawings = [describe_chart(view, Chart(name, over="", log=log, joined=joined), automatic=True) for name in known]
    return [_staircase(view), *drawings] if staircase else drawings


def _has_values(record: xr.Dataset, name: str) -> bool:
    return name in record and bool(np.isfinite(record[name]).any())


def _staircase(view: Result) -> Drawing:
    """Describe the staircase; its time axis is logarithmic if most jumps would crowd at the start of a linear axis."""
    drawing = describe_chart(view, Chart("loss", staircase=True), automatic=True)
    (panel,) = drawing.panels
    times = np.array([jump.x for jump in panel.jumps])
    end = max((line.x[-1] for line in panel.lines if line.side == "predicted"), default=0.0)
    if len(times) < 2 or 2 * np.sum(times < end / 10) < len(times):
        return drawing
    # A logarithmic axis would start at the first recorded time, decades before the first jump.
    kept = [(line, line.x >= 0.0999 * times[0]) for line in panel.lines]
    lines = [dataclasses.replace(line, x=line.x[at], y=line.y[at]) for line, at in kept]
    x = dataclasses.replace(drawing.x, log=True, decades=_decades([line.x for line in lines]))
    return dataclasses.replace(drawing, x=x, panels=(dataclasses.replace(panel, lines=lines),))


def _styled(line: Line, chart: Chart, *, several: bool, named: bool) -> Line:
    """Set the style of a line; points on a categorical axis are not connected."""
    if line.side == "observed" and chart.joined:
        line, style = _joined(line)
    elif line.side == "observed":
        points = "dots" if line.thin and not named else "points"
        style = points if chart.points or named else "arrow" if chart.arrows else "solid"
    else:
        style = "dotted" if line.side == AT_SCALE else "bars" if named else "dashed"
    pale = several and style in ("solid", "arrow") and not chart.joined
    weight = "thin" if line.thin else "pale" if pale else "full"
    return dataclasses.replace(line, style=style, weight=weight)


def _joined(line: Line) -> tuple[Line, Literal["solid", "marked"]]:
    """Drop the missing values of a line, and choose a style that marks points if values between them were missing."""
    known = np.flatnonzero(np.isfinite(line.x) & np.isfinite(line.y))
    style = "marked" if len(known) and len(known) <= np.ptp(known) else "solid"
    low, high = (None if each is None else each[known] for each in (line.low, line.high))
    return dataclasses.replace(line, x=line.x[known], y=line.y[known], low=low, high=high), style


def _is_logarithmic(found: Found) -> bool:
    """Whether the x-axis should be logarithmic: for certain quantities, or if the points form a geometric sequence."""
    if found.axis in _LOGARITHMIC:
        return True
    x = found.lines[0].x
    x = x[1:] if len(x) and x[0] == 0 else x
    if len(x) < 4 or not np.all(x > 0) or x[-1] < _RATIO * x[0]:
        return False
    return bool(np.ptp(np.diff(np.log(x))) < 1e-3 * np.log(x[1] / x[0]))


def _is_power_law(found: Found) -> bool:
    """Whether most curves are nearly straight on two logarithmic axes, and the values span at least a decade."""
    values = np.concatenate([line.y for line in found.lines])
    if not _is_logarithmic(found) or not np.all(values > 0) or values.max() < 10 * values.min():
        return False
    logs = [(np.log(line.x[line.x > 0]), np.log(line.y[line.x > 0])) for line in found.lines]
    straight = [abs(np.corrcoef(x, y)[0, 1]) if len(x) > 2 and np.ptp(y) > 0 else 0.0 for x, y in logs]
    return bool(np.median(straight) > _STRAIGHT)


def _counted(found: Found) -> dict[int, str]:
    """Return a tick at each of a few consecutive integers, unless the axis is time or step."""
    x = np.unique(np.concatenate([line.x for line in found.lines]))
    few = found.axis not in _CLOCKS and 1 < len(x) <= _MOST_TICKS
    return {int(at): str(int(at)) for at in x} if few and np.array_equal(x, int(x[0]) + np.arange(len(x))) else {}


def _decades(parts: Sequence[np.ndarray]) -> tuple[float, float]:
    values = np.concatenate(parts)
    positive = values[np.isfinite(values) & (values > 0)]
    return (float(np.log10(positive.min())), float(np.log10(positive.max()))) if len(positive) else (0.0, 0.0)


def _jumps(view: Result, lines: Collection[Line]) -> list[Jump]:
    """Return the jumps of a single predicted staircase."""
    steps = [line for line in lines if line.side == "predicted"]
    if view.staircase is None or len(steps) != 1:
        return []
    # Two points for the start, two for each jump, one for the end.
    columns = steps[0].x[2:-1:2], steps[0].y[2:-1:2], steps[0].y[3:-1:2]
    learned = [jump.learned for jump in view.staircase.rows]
    return [Jump(*each) for each in zip(*columns, learned, strict=False)]


def _residual(lines: Collection[Line]) -> list[Line]:
    """Return observed minus predicted values for every pair of lines, at the observed points."""
    predicted = {line.label: line for line in lines if line.side == "predicted" and not line.thin}
    pairs = [(line, predicted[line.label]) for line in lines if line.side == "observed" and line.label in predicted]
    differences = [(line, line.y - np.interp(line.x, other.x, other.y)) for line, other in pairs]
    return [dataclasses.replace(line, y=y, low=None, high=None, style="difference") for line, y in differences]


def _end_labels(lines: Collection[Line], log_y: bool) -> list[EndLabel]:
    """Place labels at the ends of the lines, moved as little as possible to avoid overlap."""
    ends, drawn = {}, []
    for line in lines:
        seen = np.isfinite(line.x) & np.isfinite(line.y) & ((line.y > 0) | (not log_y))
        if seen.any():
            drawn.append(line.y[seen])
            ends[line.label] = EndLabel(float(line.x[seen][-1]), float(line.y[seen][-1]), line.label, line.colour)
    if not ends:
        return []
    to, back = (np.log, np.exp) if log_y else (np.asarray, np.asarray)
    everything = to(np.concatenate(drawn))
    bottom, height = everything.min(), float(np.ptp(everything)) or 1.0
    heights = (to(np.array([end.y for end in ends.values()])) - bottom) / height
    # Labels of coinciding lines follow the order of the legend.
    order = np.lexsort((-np.arange(len(heights)), np.round(heights / _UPON)))
    most = int(1 / _APART)
    if len(order) > most:
        order = order[np.linspace(0, len(order) - 1, most).round().astype(int)]
    gaps = _APART * np.arange(len(order))
    apart = gaps + isotonic_regression(np.maximum.accumulate(heights[order]) - gaps).x
    ordered = [list(ends.values())[i] for i in order]
    return [end._replace(y=float(back(bottom + height * each))) for each, end in zip(apart, ordered, strict=True)]
