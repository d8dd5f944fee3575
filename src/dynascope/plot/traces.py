"""What of a record is drawn, before any drawing library: the curves, staircases and features of a tree.

`plot` draws these for files and `report` draws them for pages, so that both show the same thing in the same colours.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float

from dynascope.arguments import require
from dynascope.record import DIMENSIONS

__all__ = [
    "Trace",
    "curve_names",
    "curves",
    "has_features",
    "has_staircase",
    "is_logarithmic",
    "is_power_law",
    "learned_features",
    "plane",
    "planes",
    "side",
    "staircase",
]

# The colours of Okabe and Ito, which the colour-blind can tell apart; those that stand out on white come first.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999999")
OBSERVED, PREDICTED = PALETTE[:2]
_AXES = (
    *("time", "step", "length", "scaling_parameter", "scale", "learning_rate", "samples", "neurons", "compute"),
    *("mode", "sample", "neuron", "exponent"),
)
_LOGARITHMIC = ("scaling_parameter", "scale", "learning_rate", "samples", "compute", "neurons")
_DECADES = 100.0  # less of a span does not need a logarithmic axis
_DECADE = 10.0  # nor does less of a span of values
_STRAIGHT = 0.97  # correlation of logarithms from which on a curve is seen best between two logarithmic axes
_ENSEMBLE = ("seed", "scale", "learning_rate")


class Trace(NamedTuple):
    """One line to draw.

    Attributes:
        side: "observed", drawn solid, or "predicted", drawn dashed.
        label: What the line is, such as "mode 1"; empty when its variable has no members.
        colour: The same for the same label on both sides.
        alone: False for one of several lines of the same label, drawn thin.
        axis: Name of the dimension that x runs over, or of the other variable in a plane.
        x: Time, another axis, or the other variable, shape (n,).
        y: Values, shape (n,).
    """

    side: str
    label: str
    colour: str
    alone: bool
    axis: str
    x: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]


def side(tree: xr.DataTree | xr.Dataset, name: str) -> xr.Dataset | None:
    """One side of a tree, "observed" or "predicted", or None. A record alone is the side that its contents tell."""
    tree = xr.DataTree(tree) if isinstance(tree, xr.Dataset) else tree
    record = tree[name].to_dataset() if name in tree.children else tree.to_dataset()
    if name not in tree.children:
        alone = "predicted" if "theory" in record.attrs or "jump_time" in record else "observed"
        if alone != name:
            return None
    return record if record.data_vars else None


def curve_names(tree: xr.DataTree | xr.Dataset) -> list[str]:
    """Variables of either side that are curves: over time, steps, scales or learning rates. Shared ones come first."""
    records = [record for name in ("observed", "predicted") if (record := side(tree, name)) is not None]
    found = [[str(name) for name, values in record.data_vars.items() if _is_curve(values)] for record in records]
    shared = [name for name in found[0] if name in found[-1]] if len(found) == 2 else []
    return list(dict.fromkeys([*shared, *itertools.chain(*found)]))


def curves(tree: xr.DataTree | xr.Dataset, variable: str) -> list[Trace]:
    """The lines of a variable on both sides, one colour for each mode, layer or other member.

    Seeds share a colour; so do scales and learning rates where the variable also has modes or the like.

    Raises:
        InputError: Neither side has such a curve.
    """
    names = curve_names(tree)
    require(
        variable in names,
        f"no side of the tree has a curve {variable!r}",
        argument="variable",
        value=variable,
        remedy=f"choose one of {', '.join(names)}" if names else "pass a tree with a variable over time",
    )
    records = {name: record for name in ("observed", "predicted") if (record := side(tree, name)) is not None}
    found = {
        name: list(_lines(record[variable]))
        for name, record in records.items()
        if variable in record and _is_curve(record[variable])
    }
    labels = list(dict.fromkeys(label for each in found.values() for label, *_ in each))
    colours = dict(zip(labels, _colours(len(labels)), strict=True))
    traces = []
    for name, each in found.items():
        for label, axis, x, y in each:
            colour = colours[label] if len(labels) > 1 else {"observed": OBSERVED, "predicted": PREDICTED}[name]
            traces.append(Trace(name, label, colour, [line[0] for line in each].count(label) == 1, axis, x, y))
    return traces


def is_logarithmic(lines: Sequence[Trace]) -> bool:
    """Whether the horizontal axis is to be logarithmic: by its kind, or as its points (after a zero) keep a ratio.

    Example:
        >>> x = np.geomspace(1.0, 1e6, 20)
        >>> [is_logarithmic([Trace("observed", "", OBSERVED, True, "time", each, x)]) for each in (x, np.arange(20.0))]
        [True, False]
    """
    if lines[0].axis in _LOGARITHMIC:
        return True
    x = lines[0].x[1:] if len(lines[0].x) and lines[0].x[0] == 0 else lines[0].x
    if len(x) < 4 or not np.all(x > 0) or x[-1] < _DECADES * x[0]:
        return False
    return bool(np.ptp(np.diff(np.log(x))) < 1e-3 * np.log(x[1] / x[0]))


def is_power_law(lines: Sequence[Trace]) -> bool:
    """Whether the vertical axis is to be logarithmic too: most curves are about straight between logarithmic axes.

    Example:
        >>> x = np.geomspace(1.0, 1e6, 20)
        >>> [is_power_law([Trace("observed", "", OBSERVED, True, "time", x, y)]) for y in (x**-0.5, 1 / (1 + x / 1e5))]
        [True, False]
    """
    if not is_logarithmic(lines):
        return False
    values = np.concatenate([line.y for line in lines])
    if not np.all(values > 0) or values.max() < _DECADE * values.min():
        return False
    return bool(np.median([_straightness(line.x, line.y) for line in lines]) > _STRAIGHT)


def _straightness(x: np.ndarray, y: np.ndarray) -> float:
    """Size of the correlation of ln x and ln y where x is positive; zero for a constant or fewer than three points."""
    x, y = np.log(x[x > 0]), np.log(y[x > 0])
    if len(x) < 3 or np.ptp(y) == 0:
        return 0.0
    return float(abs(np.corrcoef(x, y)[0, 1]))


def planes(tree: xr.DataTree | xr.Dataset) -> list[tuple[str, str]]:
    """The pairs of variables that the tree asks to be drawn against each other, if a side has both."""
    asked = json.loads(tree.attrs.get("planes", "[]"))
    return [(x, y) for x, y in asked if any(True for _ in _sides_with(tree, x, y))]


def plane(tree: xr.DataTree | xr.Dataset, horizontal: str, vertical: str) -> list[Trace]:
    """The paths that two variables over the same dimensions draw together, one colour for each member.

    Raises:
        InputError: Neither side has both as curves over the same dimensions.
    """
    pairs = list(_sides_with(tree, horizontal, vertical))
    require(
        bool(pairs),
        f"no side of the tree has curves {horizontal!r} and {vertical!r} over the same dimensions",
        argument="horizontal",
        value=horizontal,
        remedy=f"choose two of {', '.join(curve_names(tree))}",
    )
    found = curves(tree, vertical)
    other = {(line.side, line.label): line.y for line in curves(tree, horizontal)}
    sides = {name for name, _ in pairs}
    return [
        line._replace(axis=horizontal, x=other[line.side, line.label])
        for line in found
        if line.side in sides and line.alone
    ]


def _sides_with(tree: xr.DataTree | xr.Dataset, *names: str) -> Iterator[tuple[str, xr.Dataset]]:
    """The sides that have all these variables as curves over the same dimensions."""
    for name in ("observed", "predicted"):
        record = side(tree, name)
        if record is None or not all(each in record and _is_curve(record[each]) for each in names):
            continue
        if len({frozenset(record[each].dims) for each in names}) == 1:
            yield name, record


def _is_curve(values: xr.DataArray) -> bool:
    return bool(set(_AXES) & set(values.dims)) and "jump" not in values.dims and values.dtype.kind in "fiub"


def has_staircase(tree: xr.DataTree | xr.Dataset) -> bool:
    """Whether the prediction is a staircase."""
    predicted = side(tree, "predicted")
    return predicted is not None and {"jump_time", "loss_before", "loss_after"} <= set(predicted)


def staircase(tree: xr.DataTree | xr.Dataset) -> list[Trace]:
    """The observed loss and the predicted staircase: level at the plateaus, upright at the jumps.

    The staircase ends with the observation, unless jumps are predicted later; then it shows as much time again.

    Raises:
        InputError: The tree holds neither an observed loss nor predicted jumps.
    """
    observed, predicted = side(tree, "observed"), side(tree, "predicted")
    seen = [] if observed is None or "loss" not in curve_names(observed) else list(_lines(observed["loss"]))
    require(
        bool(seen) or has_staircase(tree),
        "the tree has neither an observed loss nor predicted jumps",
        argument="tree",
        remedy="pass what predict, observe or compare return",
    )
    traces = [Trace("observed", "", OBSERVED, len(seen) == 1, axis, x, y) for _, axis, x, y in seen]
    if predicted is not None and has_staircase(tree):
        steps = list(_members(predicted))
        times = predicted["jump_time"].to_numpy()
        end = 1.15 * np.max(times[np.isfinite(times)], initial=0.0)
        if seen:
            last = max(float(x[-1]) for _, _, x, _ in seen)
            end = np.clip(end, last, 2 * last)
        for step in steps:
            x, y = _path(step, float(end) or 1.0)
            traces.append(Trace("predicted", "", PREDICTED, len(steps) == 1, "time", x, y))
    return traces


def has_features(tree: xr.DataTree | xr.Dataset) -> bool:
    """Whether the prediction says which features are learned."""
    predicted = side(tree, "predicted")
    return predicted is not None and any(name in predicted for name in ("input_feature", "coefficient"))


def learned_features(tree: xr.DataTree | xr.Dataset) -> tuple[xr.DataArray, tuple[int, int] | None]:
    """What is learned at each jump, (jump, feature), and (height, width) if the inputs are images.

    Of an ensemble the first member is taken.

    Raises:
        InputError: The prediction names no features.
    """
    require(
        has_features(tree),
        "the prediction names no features",
        argument="tree",
        remedy="pass a tree whose predicted side has input_feature or coefficient",
    )
    predicted = side(tree, "predicted")
    assert predicted is not None
    values = predicted["input_feature" if "input_feature" in predicted else "coefficient"]
    values = values.isel({name: 0 for name in values.dims if name not in ("jump", "feature")})
    values = values.transpose("jump", "feature")
    setup = tree["setup"].attrs if isinstance(tree, xr.DataTree) and "setup" in tree.children else {}
    height, width = json.loads({**predicted.attrs, **setup}.get("image_shape", "null")) or (0, 0)
    return values, (height, width) if height * width == values.sizes["feature"] else None


def _lines(values: xr.DataArray) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Label, axis, x and y of every line in a variable."""
    axis = next(name for name in _AXES if name in values.dims)
    others = [str(name) for name in values.dims if name != axis]
    named = [name for name in others if name not in _ENSEMBLE] or [name for name in others if name != "seed"]
    values = values.transpose(*others, axis)
    x = values[axis].to_numpy().astype(float)
    for index in np.ndindex(values.shape[:-1]):
        at = dict(zip(others, index, strict=True))
        label = ", ".join(f"{_words(name)} {_short(values[name].to_numpy()[at[name]])}" for name in named)
        yield label, axis, x, values.to_numpy()[index].astype(float)


def _members(record: xr.Dataset) -> Iterator[xr.Dataset]:
    """The staircases of an ensemble, one by one."""
    others = [name for name in record["jump_time"].dims if name != "jump"]
    for index in np.ndindex(*(record.sizes[name] for name in others)):
        yield record.isel(dict(zip(others, index, strict=True)))


def _path(step: xr.Dataset, end: float) -> tuple[np.ndarray, np.ndarray]:
    times, before, after = (step[name].to_numpy() for name in ("jump_time", "loss_before", "loss_after"))
    # A jump at an infinite or unknown time is never reached, nor is what would follow it.
    reached = np.logical_and.accumulate(np.isfinite(times) & (times <= end))
    start = before[0] if len(before) else step.attrs.get("initial_loss", np.nan)
    times, before, after = times[reached], before[reached], after[reached]
    # The first plateau needs a point at positive time, or a logarithmic axis would drop it.
    first = times[0] / 10 if len(times) else end / 10
    last = after[-1] if len(after) else start
    x = np.concatenate([[0.0, first], np.repeat(times, 2), [end]])
    y = np.concatenate([[start, start], np.stack([before, after], axis=1).ravel(), [last]])
    return x, y


def _colours(count: int) -> list[str]:
    """As many colours as asked: the palette, and beyond it a ramp of one hue that orders the members."""
    if count <= len(PALETTE):
        return list(PALETTE[:count])
    blue, sand = np.array([0, 114, 178]), np.array([230, 159, 0])
    mixed = [np.round(blue + (sand - blue) * i / (count - 1)).astype(int) for i in range(count)]
    return [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in mixed]


def _words(name: str) -> str:
    return name.replace("_", " ")


def _short(label: object) -> str:
    return f"{label:.4g}" if isinstance(label, float) else str(label)


def axis_label(name: str) -> str:
    """What an axis is called: the record's own words for a dimension, plain words for a variable."""
    return DIMENSIONS.get(name, _words(name))
