"""What of a record is drawn, before any drawing library: the curves and staircases of a tree.

`plot` draws these for files and `report` draws them for pages, so that both show the same thing in the same colours.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float

from dynascope.arguments import require
from dynascope.errors import InputError
from dynascope.results import StaircaseView, TreeView, describe
from dynascope.results import label as axis_label
from dynascope.results.numbers import number
from dynascope.results.tree_view import Tree

__all__ = ["Trace", "corners", "curve_names", "curves", "lines", "plane", "planes", "ramp", "staircase"]

# The colours of Okabe and Ito, which the colour-blind can tell apart; those that stand out on white come first.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999999")
OBSERVED, PREDICTED = PALETTE[:2]
AT_SCALE = "at this scale"  # what the line of a staircase's own loss curve is called
SIDES = {"observed": OBSERVED, "predicted": PREDICTED, AT_SCALE: PALETTE[2]}
FAINT = "#777777"
_AXES = (
    *("time", "step", "length", "scaling_parameter", "scale", "learning_rate", "samples", "neurons", "compute"),
    *("mode", "sample", "neuron", "exponent"),
)
_ENSEMBLE = ("seed", "scale", "learning_rate")


class Trace(NamedTuple):
    """One line to draw.

    Attributes:
        side: "observed", drawn solid, "predicted", drawn dashed, or the loss predicted `AT_SCALE`, drawn dotted.
        label: What the line is, such as "mode 1"; empty when its variable has no members.
        colour: The same for the same label on both sides.
        alone: False for one of several lines of the same label, drawn thin.
        axis: Name of the dimension that x runs over, or of the other variable in a plane.
        x: Time, another axis, or the other variable, shape (n,).
        y: Values, shape (n,).
        x_label: What the horizontal axis is called; empty if only the name is known.
        y_label: What the vertical axis is called.
    """

    side: str
    label: str
    colour: str
    alone: bool
    axis: str
    x: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]
    x_label: str = ""
    y_label: str = ""


def curve_names(tree: Tree) -> list[str]:
    """Variables of either side that are curves: over time, steps, scales or learning rates. Shared ones come first."""
    records = TreeView.of(tree).sides.values()
    found = [[str(name) for name, values in record.data_vars.items() if _is_curve(values)] for record in records]
    shared = [name for name in found[0] if name in found[-1]] if len(found) == 2 else []
    return list(dict.fromkeys([*shared, *itertools.chain(*found)]))


def curves(tree: Tree, variable: str) -> list[Trace]:
    """The lines of a variable on both sides, one colour for each mode, layer or other member.

    Seeds share a colour; so do scales and learning rates where the variable also has modes or the like.

    Raises:
        InputError: Neither side has such a curve.
    """
    view = TreeView.of(tree)
    found = {name: list(lines(record[variable])) for name, record in view.sides.items() if _has_curve(record, variable)}
    if not found:
        names = curve_names(view)
        raise InputError(
            f"no side of the tree has a curve {variable!r}",
            argument="variable",
            value=variable,
            remedy=f"choose one of {', '.join(names)}" if names else "pass a tree with a variable over time",
        )
    labels = list(dict.fromkeys(label for each in found.values() for label, *_ in each))
    colours = dict(zip(labels, ramp(len(labels)), strict=True))
    traces = []
    for name, each in found.items():
        for label, axis, x, y in each:
            colour = colours[label] if len(labels) > 1 else SIDES[name]
            alone = [line[0] for line in each].count(label) == 1
            values = view.sides[name][variable]
            words = axis_label(values[axis]), axis_label(values)
            traces.append(Trace(name, label, colour, alone, axis, x, y, *words))
    return traces


def planes(tree: Tree) -> list[tuple[str, str]]:
    """The pairs of variables that the tree asks to be drawn against each other, if a side has both."""
    view = TreeView.of(tree)
    asked = view.attributes.get("planes", [])
    return [(x, y) for x, y in asked if _sides_with(view, x, y)]


def plane(tree: Tree, horizontal: str, vertical: str) -> list[Trace]:
    """The paths that two variables over the same dimensions draw together, one colour for each member.

    Raises:
        InputError: Neither side has both as curves over the same dimensions.
    """
    view = TreeView.of(tree)
    sides = _sides_with(view, horizontal, vertical)
    require(
        bool(sides),
        f"no side of the tree has curves {horizontal!r} and {vertical!r} over the same dimensions",
        argument="horizontal",
        value=horizontal,
        remedy=f"choose two of {', '.join(curve_names(view))}",
    )
    found = curves(view, vertical)
    other = {(line.side, line.label): line for line in curves(view, horizontal)}
    return [
        line._replace(axis=horizontal, x=other[line.side, line.label].y, x_label=other[line.side, line.label].y_label)
        for line in found
        if line.side in sides and line.alone
    ]


def _sides_with(view: TreeView, *names: str) -> set[str]:
    """The sides that have all these variables as curves over the same dimensions."""
    sides = {side: record for side, record in view.sides.items() if all(_has_curve(record, name) for name in names)}
    return {side for side, record in sides.items() if len({frozenset(record[name].dims) for name in names}) == 1}


def _has_curve(record: xr.Dataset, name: str) -> bool:
    return name in record and _is_curve(record[name])


def _is_curve(values: xr.DataArray) -> bool:
    return bool(set(_AXES) & set(values.dims)) and "jump" not in values.dims and values.dtype.kind in "fiub"


def staircase(tree: Tree) -> list[Trace]:
    """The observed loss, the predicted staircase, level at the plateaus, upright at the jumps, and its loss curve.

    The staircase ends with the observation, unless jumps are predicted later; then it shows as much time again.

    Raises:
        InputError: The tree holds neither an observed loss nor predicted jumps.
    """
    view = TreeView.of(tree)
    observed = view.observed
    seen = list(lines(observed["loss"])) if observed is not None and _has_curve(observed, "loss") else []
    require(
        bool(seen) or view.staircase is not None,
        "the tree has neither an observed loss nor predicted jumps",
        argument="tree",
        remedy="pass what predict, observe or compare return",
    )
    words = [describe("time")[1], describe("loss")[0]]
    if seen and observed is not None:
        words = [axis_label(part) for part in (observed[seen[0][1]], observed["loss"])]
    traces = [Trace("observed", "", OBSERVED, len(seen) == 1, axis, x, y, *words) for _, axis, x, y in seen]
    if view.staircase is not None:
        members = list(view.staircase.members())
        times = view.staircase.times
        end = 1.15 * np.max(times[np.isfinite(times)], initial=0.0)
        if seen:
            last = max(float(x[-1]) for _, _, x, _ in seen)
            end = np.clip(end, last, 2 * last)
        for member in members:
            x, y = _path(member, float(end) or 1.0)
            traces.append(Trace("predicted", "", PREDICTED, len(members) == 1, "time", x, y, *words))
        curve = view.staircase.curve
        if curve is not None:
            x, y = curve["time"].to_numpy(), curve.to_numpy()
            shown = x <= (float(end) or 1.0)
            traces.append(Trace(AT_SCALE, "", SIDES[AT_SCALE], True, "time", x[shown], y[shown], *words))
    return traces


def corners(line: Trace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The time of each jump on the path of a staircase, and the loss before and after it."""
    # Two points for the start, two for each jump, one for the end.
    return line.x[2:-1:2], line.y[2:-1:2], line.y[3:-1:2]


def lines(
    values: xr.DataArray, axis: str | None = None, symbols: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Label, axis, x and y of every line in a variable; labels that are text are placed at 0, 1, ….

    Args:
        values: The variable.
        axis: The dimension to draw it over; by default the first of time, steps and so on.
        symbols: What to call dimensions in place of their names.
    """
    axis = axis or next(name for name in _AXES if name in values.dims)
    others = [str(name) for name in values.dims if name != axis]
    named = [name for name in others if name not in _ENSEMBLE] or [name for name in others if name != "seed"]
    named = [name for name in named if symbols.get(name) != ""]
    values = values.transpose(*others, axis)
    places = values[axis].to_numpy()
    x = np.arange(float(len(places))) if places.dtype.kind == "U" else places.astype(float)
    for index in np.ndindex(values.shape[:-1]):
        at = dict(zip(others, index, strict=True))
        label = ", ".join(_member(name, values[name].to_numpy()[at[name]], symbols) for name in named)
        yield label, axis, x, values.to_numpy()[index].astype(float)


def _path(steps: StaircaseView, end: float) -> tuple[np.ndarray, np.ndarray]:
    times, levels = steps.times, steps.levels
    # A jump at an infinite or unknown time is never reached, nor is what would follow it.
    reached = int(np.logical_and.accumulate(np.isfinite(times) & (times <= end)).sum())
    times, levels = times[:reached], levels[: reached + 1]
    # The first plateau needs a point at positive time, or a logarithmic axis would drop it.
    first = times[0] / 10 if len(times) else end / 10
    x = np.concatenate([[0.0, first], np.repeat(times, 2), [end]])
    return x, np.concatenate([levels[:1], np.repeat(levels, 2)])


def ramp(count: int) -> list[str]:
    """As many colours as asked: the palette, and beyond it a ramp of one hue that orders the members."""
    if count <= len(PALETTE):
        return list(PALETTE[:count])
    blue, sand = np.array([0, 114, 178]), np.array([230, 159, 0])
    mixed = [np.round(blue + (sand - blue) * i / (count - 1)).astype(int) for i in range(count)]
    return [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in mixed]


def _member(dimension: str, label: object, symbols: Mapping[str, str]) -> str:
    """What a member is called: by its own name if it has one, else by dimension or symbol and number."""
    if isinstance(label, str):
        return label
    told = number(label) if isinstance(label, float) else str(label)
    return f"{symbols[dimension]} = {told}" if dimension in symbols else f"{dimension.replace('_', ' ')} {told}"
