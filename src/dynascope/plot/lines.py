"""The lines of a chart: variables of both records, with labels, colours and intervals."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float

from dynascope.results import Result, StaircaseView, describe
from dynascope.results import label as axis_label
from dynascope.results.chart import Chart
from dynascope.results.numbers import number
from dynascope.validation import require

__all__ = ["AT_SCALE", "FAINT", "PREDICTED", "SIDES", "Found", "Line", "curve_names", "find_lines", "is_path"]

# The colour-blind-safe palette of Okabe and Ito, the colours with the highest contrast on white first.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999999")
OBSERVED, PREDICTED = PALETTE[:2]
_INK = "#111111"  # visible on the observed curve and beside it
AT_SCALE = "predicted curve at this scale"  # the loss curve that belongs to a predicted staircase
SIDES = {"observed": OBSERVED, "predicted": PREDICTED, AT_SCALE: _INK}
FAINT = "#777777"
_AXES = (
    *("time", "step", "length", "scaling_parameter", "scale", "learning_rate", "samples", "neurons", "compute"),
    *("mode", "sample", "neuron", "exponent"),
)
_ENSEMBLE = ("seed", "scale", "learning_rate")


@dataclasses.dataclass(frozen=True)
class Line:
    """One line to draw.

    Attributes:
        side: "observed", "predicted" or `AT_SCALE`.
        label: The member or variable, such as "mode 1"; empty if there is only one.
        x: Positions along the x-axis, shape (n,).
        y: Positions along the y-axis, shape (n,).
        thin: Whether the line is one of several with the same label.
        low: Lower end of the interval at each point, shape (n,), or None.
        high: Upper end of the interval, or None.
        colour: The colour; lines with the same label have the same colour on both sides.
        style: A solid, dashed or dotted line, a solid line with marked points, points, small dots, horizontal bars, a
            path that ends in an arrow, or the difference of two lines. Intervals are error bars on points and dots, and
            bands around other lines.
        weight: "full", "thin", or "pale" for a broad line that remains visible under a dashed line of the same colour.
    """

    side: str
    label: str
    x: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]
    thin: bool = False
    low: Float[np.ndarray, " n"] | None = None
    high: Float[np.ndarray, " n"] | None = None
    colour: str = OBSERVED
    style: Literal["solid", "marked", "dashed", "dotted", "points", "dots", "bars", "arrow", "difference"] = "solid"
    weight: Literal["full", "thin", "pale"] = "full"

    @property
    def has_error_bars(self) -> bool:
        """Whether the interval is drawn as error bars."""
        return self.low is not None and self.style in ("points", "dots")


class Found(NamedTuple):
    """Lines on the same axes.

    Attributes:
        lines: The lines.
        axis: Name of the dimension or variable on the x-axis.
        x_label: Label of the x-axis.
        y_label: Label of the y-axis.
        names: The members along the x-axis if they are text, drawn at 0, 1, ….
    """

    lines: list[Line]
    axis: str
    x_label: str
    y_label: str
    names: Sequence[str] = ()


def curve_names(view: Result) -> list[str]:
    """Return the variables over time, step, scale and similar axes; variables in both records come first."""
    found = [[str(name) for name in side.data_vars if _axis(side, str(name), "")] for side in view.sides.values()]
    shared = [name for name in found[0] if name in found[-1]] if len(found) == 2 else []
    return list(dict.fromkeys([*shared, *itertools.chain(*found)]))


def is_path(view: Result, chart: Chart) -> bool:
    """Whether a chart draws variables against another variable."""
    return any(chart.over in side.data_vars for side in view.sides.values())


def find_lines(view: Result, chart: Chart) -> Found:
    """Find the lines of a chart.

    Raises:
        InputError: The tree lacks a variable or a member that the chart names, or a variable lacks the dimension that
            the chart names.
    """
    found = _staircase(view) if chart.staircase else _variables(view, chart)
    finite = np.concatenate([line.y[np.isfinite(line.y)] for line in found.lines])
    if chart.decades is None or not len(finite):
        return found
    least = finite.max() / 10**chart.decades
    lows = [None if line.low is None else np.maximum(line.low, least) for line in found.lines]
    parts = [(line, np.where(line.y < least, np.nan, line.y), low) for line, low in zip(found.lines, lows, strict=True)]
    return found._replace(lines=[dataclasses.replace(line, y=y, low=low) for line, y, low in parts])


def _staircase(view: Result) -> Found:
    """Return the observed loss, the predicted staircase, and the predicted loss curve.

    The staircase extends slightly beyond the last predicted jump, but at least to the end of the observation and at
    most to twice that time.
    """
    found, seen = Found([], "time", describe("time")[1], describe("loss")[0]), []
    if view.observed is not None and (axis := _axis(view.observed, "loss", "")):
        found = Found([], axis, *(axis_label(view.observed[name]) for name in (axis, "loss")))
        seen = [(x, y) for _, x, y in _members(view.observed["loss"], axis)]
    require(
        seen or view.staircase,
        "the result contains neither an observed loss nor predicted jumps",
        argument="tree",
        remedy="pass the result of predict, observe or compare",
    )
    lines = [Line("observed", "", x, y, thin=len(seen) > 1) for x, y in seen]
    if view.staircase is not None:
        times = view.staircase.times
        end = 1.15 * np.max(times[np.isfinite(times)], initial=0.0)
        if seen:
            last = max(float(x[-1]) for x, _ in seen)
            end = np.clip(end, last, 2 * last)
        end = float(end) or 1.0
        steps = [_steps(member, end) for member in view.staircase.members()]
        lines += [Line("predicted", "", x, y, thin=len(steps) > 1, colour=PREDICTED) for x, y in steps]
        curve = view.staircase.curve
        if curve is not None:
            curve = curve[curve["time"].to_numpy() <= end]
            lines.append(Line(AT_SCALE, "", curve["time"].to_numpy(), curve.to_numpy(), colour=SIDES[AT_SCALE]))
    return found._replace(lines=lines)


def _steps(steps: StaircaseView, end: float) -> tuple[np.ndarray, np.ndarray]:
    times, levels = steps.times, steps.levels
    # A jump at an infinite or unknown time is never reached, nor is any after it.
    reached = int(np.logical_and.accumulate(np.isfinite(times) & (times <= end)).sum())
    times, levels = times[:reached], levels[: reached + 1]
    # The first plateau needs a point at positive time, or a logarithmic axis would drop it.
    first = times[0] / 10 if len(times) else end / 10
    x = np.concatenate([[0.0, first], np.repeat(times, 2), [end]])
    return x, np.concatenate([levels[:1], np.repeat(levels, 2)])


def _variables(view: Result, chart: Chart) -> Found:
    for name in (*(chart.interval or ()), *filter(None, [chart.error])):
        _sides_with(view, name)
    drawn = [record[name] for name in chart.variables for record in _sides_with(view, name).values()]
    dimensions = {str(each) for values in drawn for each in values.dims}
    unknown = sorted({*chart.members, *chart.places} - dimensions)
    require(
        not unknown,
        f"a figure of {', '.join(chart.variables)} selects members along {', '.join(unknown)}, but has no such "
        "dimension",
        argument="members",
        value=unknown,
        remedy=f"choose from {', '.join(sorted(dimensions))}",
    )
    lines: list[Line] = []
    words = []
    for place, name in enumerate(chart.variables):
        for side, record in _sides_over(view, name, chart.over).items():
            long_name = record[name].attrs.get("long_name", describe(name)[0])
            word = "" if len(chart.variables) == 1 else chart.words[place] if chart.words else long_name
            lines += _of_record("observed" if name in chart.trained else side, record, name, word, chart)
            over = chart.over or _axis(record, name, "") or ""
            along = _chosen(record[over], chart).to_numpy()
            names = along.tolist() if along.dtype.kind == "U" else []
            words.append((over, axis_label(record[over]), axis_label(record[name]), names))
    labels = dict.fromkeys(line.label for line in lines)
    colours = dict(zip(labels, _ramp(len(labels)), strict=True))
    one = len(labels) == 1
    coloured = [dataclasses.replace(line, colour=SIDES[line.side] if one else colours[line.label]) for line in lines]
    return Found(coloured, *words[0])


def _of_record(side: str, record: xr.Dataset, name: str, word: str, chart: Chart) -> Iterator[Line]:
    axis = _axis(record, name, chart.over) or ""
    found = list(_members(_chosen(record[name], chart), axis, chart.symbols))
    columns = {
        each: [y for *_, y in _members(_chosen(record[each].transpose(*record[name].dims), chart), axis)]
        for each in (*(chart.interval or ()), chart.error, chart.over)
        if each in record.data_vars
    }
    labels = [label for label, *_ in found]
    for place, (label, x, y) in enumerate(found):
        ends = None, None
        if chart.interval and set(chart.interval) <= set(columns):
            ends = columns[chart.interval[0]][place], columns[chart.interval[1]][place]
        elif chart.error in columns:
            ends = y - columns[chart.error][place], y + columns[chart.error][place]
        across = columns[chart.over][place] if chart.over in columns else x
        yield Line(side, ", ".join(filter(None, [word, label])), across, y, labels.count(label) > 1, *ends)


def _sides_over(view: Result, name: str, over: str) -> dict[str, xr.Dataset]:
    """Return the records in which a variable can be drawn over a dimension or another variable, by side."""
    having = _sides_with(view, name)
    fitting = {side: record for side, record in having.items() if _axis(record, name, over) is not None}
    known = dict.fromkeys(str(each) for record in having.values() for each in record[name].dims)
    require(
        fitting,
        f"a figure draws {name!r} over {over or 'time'!r}, but {name!r} has dimensions {', '.join(known)}",
        argument="over",
        value=over,
        remedy="draw over one of these dimensions, or over a variable with the same dimensions",
    )
    return fitting


def _sides_with(view: Result, name: str) -> dict[str, xr.Dataset]:
    having = {side: record for side, record in view.sides.items() if name in record.variables}
    known = dict.fromkeys(str(each) for record in view.sides.values() for each in record.data_vars)
    require(
        having,
        f"one of the figures contains {name!r}, but the result does not",
        argument="variables",
        value=name,
        remedy=f"choose from {', '.join(known)}",
    )
    return having


def _axis(record: xr.Dataset, name: str, over: str) -> str | None:
    """Return the dimension along which a variable is drawn; by default, its first dimension in the order of `_AXES`."""
    if name not in record.variables:
        return None
    dims = [str(each) for each in record[name].dims]
    if not over:
        known = [each for each in _AXES if each in dims]
        return known[0] if known and "jump" not in dims and record[name].dtype.kind in "fiu" else None
    if over in dims:
        return over
    if over not in record.data_vars or set(record[over].dims) != set(dims):
        return None
    return next((each for each in ("time", "step", *dims) if each in dims), None)


def _chosen(values: xr.DataArray, chart: Chart) -> xr.DataArray:
    """Select the members that the chart names, and drop dimensions with a single remaining member."""
    for dimension, labels in chart.members.items():
        if dimension not in values.dims:
            continue
        known = values[dimension].to_numpy().tolist()
        missing = [label for label in labels if label not in known]
        absent = "".join(map(repr, missing[:1]))
        require(
            not missing,
            f"a figure selects {dimension} {absent}, but {str(values.name)!r} has no such label",
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


def _members(
    values: xr.DataArray, axis: str, symbols: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield the label, x and y of every line of a variable; text labels are placed at 0, 1, …."""
    others = [str(name) for name in values.dims if name != axis]
    named = [name for name in others if name not in _ENSEMBLE] or [name for name in others if name != "seed"]
    named = [name for name in named if symbols.get(name) != ""]
    array, places = values.transpose(*others, axis).to_numpy(), values[axis].to_numpy()
    x = np.arange(float(len(places))) if places.dtype.kind == "U" else places.astype(float)
    for index in np.ndindex(array.shape[:-1]):
        at = dict(zip(others, index, strict=True))
        label = ", ".join(_member(name, values[name].to_numpy()[at[name]], symbols) for name in named)
        yield label, x, array[index].astype(float)


def _member(dimension: str, label: object, symbols: Mapping[str, str]) -> str:
    """Return the label of a member: its name, or the dimension or symbol with its value."""
    if isinstance(label, str) and not label.isdigit():
        return label
    value = number(label) if isinstance(label, float) else str(label)
    return f"{symbols[dimension]} = {value}" if dimension in symbols else f"{dimension.replace('_', ' ')} {value}"


def _ramp(count: int) -> list[str]:
    """Return one colour per member: the palette, or a ramp from violet over blue and green to ochre."""
    if count <= len(PALETTE):
        return list(PALETTE[:count])
    stops = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 180, 80], [200, 160, 0], [213, 94, 0]])
    places = np.linspace(0, len(stops) - 1, count)
    mixed = np.round([np.interp(places, np.arange(len(stops)), channel) for channel in stops.T]).astype(int).T
    return [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in mixed]
