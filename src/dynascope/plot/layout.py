"""What a declared chart shows of a tree, before any drawing library: its lines, intervals, labels and words."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from jaxtyping import Float

from dynascope.arguments import require
from dynascope.plot import traces
from dynascope.plot.caption import fill_caption
from dynascope.plot.chart import Chart
from dynascope.plot.traces import Trace
from dynascope.results import TreeView, describe
from dynascope.results import label as axis_label
from dynascope.results.tree_view import Tree

__all__ = ["MOST_IN_A_LEGEND", "Layout", "Series", "direct_labels", "lay_out"]

MOST_IN_A_LEGEND = 4
_FEW = 12  # things that are counted along an axis, each with a tick
_APART = 0.055  # of the height of the axes, between two labels
_UPON = 5e-4  # of it, within which two lines are one to the eye


@dataclasses.dataclass(frozen=True)
class Series:
    """One line of a chart, with its interval.

    Attributes:
        trace: The line.
        low: Low end of the interval at each point, shape (n,), or None.
        high: High end.
    """

    trace: Trace
    low: Float[np.ndarray, " n"] | None = None
    high: Float[np.ndarray, " n"] | None = None


@dataclasses.dataclass(frozen=True)
class Layout:
    """What a chart shows of one tree.

    Attributes:
        chart: The declaration.
        series: The lines.
        residual: Observed less predicted, where the chart asks for it.
        ticks: The label at each place of a horizontal axis whose labels are text, or that counts a few things.
        named: Whether that axis holds names, between which there is nothing to draw a line through.
        caption: With the numbers filled in.
        x_label: What is written along the horizontal axis.
        y_label: What is written along the vertical axis.
    """

    chart: Chart
    series: tuple[Series, ...]
    residual: tuple[Trace, ...]
    ticks: Mapping[float, str]
    named: bool
    caption: str
    x_label: str
    y_label: str

    @property
    def points(self) -> bool:
        """Whether what was observed is drawn as points."""
        return self.chart.points or self.named

    @property
    def traces(self) -> list[Trace]:
        """The lines without their intervals."""
        return [each.trace for each in self.series]

    @property
    def labels(self) -> list[str]:
        """What the lines are called, each once."""
        return list(dict.fromkeys(line.label for line in self.traces))


def lay_out(tree: Tree, chart: Chart) -> Layout:
    """Find what a chart shows of a tree.

    Raises:
        InputError: The tree lacks a variable or a member that the chart or its caption names, or a variable does not
            run over what the chart says.
    """
    view = TreeView.of(tree)
    series = _staircase(view, chart) if chart.staircase else _series(view, chart)
    lines = [each.trace for each in series]
    first = lines[0]
    several = len(chart.variables) > 1
    return Layout(
        chart=chart,
        series=tuple(series),
        residual=tuple(_residual(lines)) if chart.residual else (),
        ticks=(ticks := _ticks(view, chart)),
        named=bool(ticks)
        and any(chart.over in side.coords and side[chart.over].dtype.kind == "U" for side in view.sides.values()),
        caption=fill_caption(chart.caption, view),
        x_label=chart.x_label or first.x_label,
        y_label=chart.y_label or ("" if several else first.y_label),
    )


def _staircase(view: TreeView, chart: Chart) -> list[Series]:
    lines = traces.staircase(view)
    least = _least(lines, chart)
    return [Series(line._replace(y=np.where(line.y < least, np.nan, line.y))) for line in lines]


def _series(view: TreeView, chart: Chart) -> list[Series]:
    for name in (*(chart.interval or ()), *filter(None, [chart.error])):
        _sides_with(view, name)
    drawn = []
    for number, name in enumerate(chart.variables):
        for side, record in _sides_over(view, name, chart).items():
            word = ""
            if len(chart.variables) > 1:
                word = chart.words[number] if chart.words else record[name].attrs.get("long_name", describe(name)[0])
            drawn += _of_record("observed" if name in chart.trained else side, record, name, word, chart)
    labels = list(dict.fromkeys(each.trace.label for each in drawn))
    colours = dict(zip(labels, traces.ramp(len(labels)), strict=True))
    least = _least([each.trace for each in drawn], chart)
    return [
        Series(
            each.trace._replace(
                colour=colours[each.trace.label] if len(labels) > 1 else traces.SIDES[each.trace.side],
                y=np.where(each.trace.y < least, np.nan, each.trace.y),
            ),
            None if each.low is None else np.maximum(each.low, least),
            each.high,
        )
        for each in drawn
    ]


def _least(lines: Sequence[Trace], chart: Chart) -> float:
    """The least value that is drawn."""
    values = np.concatenate([line.y[np.isfinite(line.y)] for line in lines])
    return -np.inf if chart.decades is None or not len(values) else float(values.max() / 10**chart.decades)


def _of_record(side: str, record: xr.Dataset, name: str, word: str, chart: Chart) -> list[Series]:
    axis = _axis(record[name], chart, record) or chart.over
    values = _chosen(record[name], chart)
    words = axis_label(record[chart.over]), axis_label(values)
    found = list(traces.lines(values, axis, chart.symbols))
    members = [line[0] for line in found]
    drawn = []
    for number, (member, _, x, y) in enumerate(found):
        label = ", ".join(filter(None, [word, member]))
        across = x if chart.over == axis else _line(record[chart.over], chart, axis, number)
        trace = Trace(side, label, "", members.count(member) == 1, chart.over, across, y, *words)
        drawn.append(Series(trace, *_interval(record, chart, axis, number, y)))
    return drawn


def _sides_with(view: TreeView, name: str) -> dict[str, xr.Dataset]:
    sides = {side: record for side, record in view.sides.items() if name in record.variables}
    known = dict.fromkeys(str(each) for record in view.sides.values() for each in record.data_vars)
    require(
        bool(sides),
        f"a figure names {name!r}, which neither side of the tree has",
        argument="variables",
        value=name,
        remedy=f"choose from {', '.join(known)}",
    )
    return sides


def _sides_over(view: TreeView, name: str, chart: Chart) -> dict[str, xr.Dataset]:
    """The sides on which a variable runs over what the chart says; a side may hold it over something else."""
    sides = _sides_with(view, name)
    fitting = {side: record for side, record in sides.items() if _axis(record[name], chart, record) is not None}
    dimensions = dict.fromkeys(str(each) for record in sides.values() for each in record[name].dims)
    require(
        bool(fitting),
        f"a figure draws {name!r} over {chart.over!r}, and it runs over {', '.join(dimensions)}",
        argument="over",
        value=chart.over,
        remedy="name one of its dimensions, or a variable over the same dimensions",
    )
    return fitting


def _chosen(values: xr.DataArray, chart: Chart) -> xr.DataArray:
    """The members that the chart asks for; a dimension of which one is left goes, as it tells no line from another."""
    for dimension, labels in chart.members.items():
        if dimension not in values.dims:
            continue
        known = values[dimension].to_numpy().tolist()
        missing = [label for label in labels if label not in known]
        require(
            not missing,
            f"a figure asks for {dimension} {missing[:1]} of {str(values.name)!r}",
            argument="members",
            value=missing[:1],
            remedy=f"choose from {', '.join(map(str, known))}",
        )
        values = values.isel({dimension: [known.index(label) for label in labels]})
    for dimension in {*chart.places} & {*map(str, values.dims)}:
        size = values.sizes[dimension]
        at = {min(max(place, -size), size - 1) % size for place in chart.places[dimension]}
        values = values.isel({dimension: sorted(at)})
    alone = [each for each in {*chart.places, *chart.members} - {chart.over} if values.sizes.get(each) == 1]
    return values.squeeze(alone, drop=True)


def _axis(values: xr.DataArray, chart: Chart, record: xr.Dataset) -> str | None:
    """The dimension along which a variable is drawn: what the chart says, or that of a path against a variable."""
    if chart.over in values.dims:
        return chart.over
    if chart.over not in record.data_vars or set(record[chart.over].dims) != set(values.dims):
        return None
    return next((str(name) for name in ("time", "step", *values.dims) if name in values.dims), None)


def _line(values: xr.DataArray, chart: Chart, axis: str, number: int) -> Float[np.ndarray, " n"]:
    return list(traces.lines(_chosen(values, chart), axis))[number][3]


def _interval(
    record: xr.Dataset, chart: Chart, axis: str, number: int, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | tuple[None, None]:
    names = chart.interval or ((chart.error,) if chart.error else ())
    if not names or any(name not in record for name in names):
        return None, None
    ends = [_line(record[name], chart, axis, number) for name in names]
    return (ends[0], ends[1]) if len(ends) == 2 else (y - ends[0], y + ends[0])


def _residual(lines: Sequence[Trace]) -> list[Trace]:
    """Observed less predicted of every pair that has both, at the points of the observation."""
    predicted = {line.label: line for line in lines if line.side == "predicted" and line.alone}
    return [
        line._replace(y=line.y - np.interp(line.x, predicted[line.label].x, predicted[line.label].y))
        for line in lines
        if line.side == "observed" and line.label in predicted
    ]


def _ticks(view: TreeView, chart: Chart) -> dict[float, str]:
    for record in view.sides.values():
        if chart.over not in record.coords:
            continue
        labels = _chosen(record[chart.over], chart).to_numpy()
        if labels.dtype.kind == "U":
            return dict(enumerate(map(str, labels)))
        if labels.dtype.kind in "iu" and len(labels) <= _FEW and np.all(np.diff(labels) == 1) and "x" not in chart.log:
            return {int(label): str(label) for label in labels}
    return {}


def direct_labels(lines: Sequence[Trace], *, log_y: bool = False) -> list[tuple[float, float, str, str]]:
    """Where each line is named at its end, so that names do not run into each other.

    Args:
        lines: The lines; those of one label are named once, at the end of the last of them.
        log_y: Whether the vertical axis is logarithmic.

    Returns:
        Horizontal and vertical place, label and colour of each name that has room, from the lowest up.

    Example:
        >>> x = np.array([0.0, 1.0])
        >>> lines = [Trace("observed", name, "#000", True, "time", x, x * end) for name, end in (("a", 1), ("b", 9))]
        >>> [(label, x, round(y, 2)) for x, y, label, _ in direct_labels(lines)]
        [('a', 1.0, 1.0), ('b', 1.0, 9.0)]
    """
    ends = {}
    drawn = []
    for line in lines:
        seen = np.isfinite(line.x) & np.isfinite(line.y) & ((line.y > 0) | (not log_y))
        if seen.any():
            drawn.append(line.y[seen])
            ends[line.label] = (float(line.x[seen][-1]), float(line.y[seen][-1]), line.label, line.colour)
    if not ends:
        return []
    to, back = (np.log, np.exp) if log_y else (np.asarray, np.asarray)
    everything = to(np.concatenate(drawn))
    bottom, height = everything.min(), float(np.ptp(everything)) or 1.0
    places = (to(np.array([end[1] for end in ends.values()])) - bottom) / height
    # Of lines that end upon each other the first is named on top, as a legend does.
    order = np.lexsort((-np.arange(len(places)), np.round(places / _UPON)))
    most = int(1 / _APART)
    if len(order) > most:
        order = order[np.linspace(0, len(order) - 1, most).round().astype(int)]
    ordered, places = [list(ends.values())[i] for i in order], np.maximum.accumulate(places[order])
    return [
        (x, float(back(bottom + height * place)), label, colour)
        for place, (x, _, label, colour) in zip(_spread(places), ordered, strict=True)
    ]


def _spread(places: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Increasing places, moved as little as needed to be apart: those that touch share a centre."""
    groups = [[float(place), 1] for place in places]
    merged: list[list[float]] = []
    for centre, count in groups:
        merged.append([centre, count])
        while len(merged) > 1 and merged[-1][0] - merged[-2][0] < _APART * (merged[-1][1] + merged[-2][1]) / 2:
            upper, lower = merged.pop(), merged.pop()
            total = upper[1] + lower[1]
            merged.append([(upper[0] * upper[1] + lower[0] * lower[1]) / total, total])
    return np.concatenate([centre + _APART * (np.arange(count) - (count - 1) / 2) for centre, count in merged])
