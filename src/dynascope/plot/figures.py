"""Figures of records: the prediction dashed over the solid observation.

Every function takes labelled data and, if wanted, the axes to draw on; it returns the axes and never shows anything.
Without axes it makes a bare `matplotlib.figure.Figure`, which touches neither pyplot nor a screen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dynascope.arguments import require
from dynascope.plot import traces
from dynascope.record.store import written_beside

__all__ = ["curves", "features", "figure", "plane", "save_figure", "staircase"]

_FAINT = "#777777"
_PICTURES_IN_A_ROW = 8
MOST_PICTURES = 24
_DATELESS = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def staircase(
    tree: xr.DataTree | xr.Dataset, axes: Axes | None = None, *, log_time: bool = False, log_loss: bool = False
) -> Axes:
    """Draw the observed loss and, dashed over it, the predicted plateaus and numbered jumps.

    Args:
        tree: What `compare` returns, or a record of one side alone.
        axes: Where to draw; by default a new figure.
        log_time: Draw time on a logarithmic axis.
        log_loss: Draw the loss on a logarithmic axis.

    Returns:
        The axes.

    Raises:
        InputError: The tree holds neither an observed loss nor predicted jumps.

    Example:
        >>> from dynascope.record import make_record
        >>> predicted = make_record(
        ...     {"jump_time": (["jump"], [3.0]), "loss_before": (["jump"], [1.0]), "loss_after": (["jump"], [0.2])},
        ...     {"jump": [1]},
        ... )
        >>> staircase(predicted).get_ylabel()
        'loss'
    """
    lines = traces.staircase(tree)
    axes = axes or _new_axes()
    _draw(axes, lines, "loss", log_time, log_loss)
    steps = [line for line in lines if line.side == "predicted"]
    if len(steps) == 1:
        _number_jumps(axes, steps[0])
    return axes


def curves(
    tree: xr.DataTree | xr.Dataset,
    variable: str,
    axes: Axes | None = None,
    *,
    log_time: bool = False,
    log_values: bool = False,
) -> Axes:
    """Draw a variable over time, one colour for each mode, layer or other member.

    Args:
        tree: What `compare` returns, or a record of one side alone.
        variable: Name of the variable; it may be on one side only.
        axes: Where to draw; by default a new figure.
        log_time: Draw time on a logarithmic axis.
        log_values: Draw the values on a logarithmic axis, as is done anyway for what is about a power law.

    Returns:
        The axes.

    Raises:
        InputError: Neither side has the variable over time.

    Example:
        >>> from dynascope.record import make_record
        >>> observed = make_record({"accuracy": (["time"], [0.5, 1.0])}, {"time": [0.0, 1.0]})
        >>> len(curves(observed, "accuracy").lines)
        1
    """
    lines = traces.curves(tree, variable)
    axes = axes or _new_axes()
    _draw(axes, lines, variable, log_time, log_values or traces.is_power_law(lines))
    return axes


def plane(tree: xr.DataTree | xr.Dataset, horizontal: str, vertical: str, axes: Axes | None = None) -> Axes:
    """Draw one variable against another, as paths that begin at a dot.

    Args:
        tree: What `compare` returns, or a record of one side alone.
        horizontal: Name of a variable over time.
        vertical: Name of another over the same dimensions.
        axes: Where to draw; by default a new figure.

    Returns:
        The axes.

    Raises:
        InputError: Neither side has both over the same dimensions.

    Example:
        >>> from dynascope.record import make_record
        >>> values = {"first_weight": (["time"], [0.0, 1.0]), "output": (["time"], [0.5, 2.0])}
        >>> plane(make_record(values, {"time": [0.0, 1.0]}), "first_weight", "output").get_xlabel()
        'first weight'
    """
    lines = traces.plane(tree, horizontal, vertical)
    axes = axes or _new_axes()
    _draw(axes, lines, vertical, False, False)
    for line in lines:
        axes.plot(line.x[:1], line.y[:1], "o", color=line.colour, markersize=4)
    return axes


def features(tree: xr.DataTree | xr.Dataset, axes: Axes | None = None) -> Axes:
    """Show what is learned at each jump: pictures where the inputs are images, else a heat map.

    Red is positive, blue negative, white zero. Each picture has a scale of its own; a heat map has one for all.

    Args:
        tree: What `compare` returns, or a predicted record with `input_feature` or `coefficient` over the jumps.
        axes: Where to draw; by default a new figure.

    Returns:
        The axes.

    Raises:
        InputError: The prediction names no features.

    Example:
        >>> from dynascope.record import make_record
        >>> predicted = make_record(
        ...     {"coefficient": (["jump", "feature"], [[0.0, 2.0], [1.0, 2.0]])},
        ...     {"jump": [1, 2], "feature": ["age", "mass"]},
        ...     attributes={"theory": "an example"},
        ... )
        >>> [label.get_text() for label in features(predicted).get_xticklabels()]
        ['age', 'mass']
    """
    values, image_shape = traces.learned_features(tree)
    labels = [str(label) for label in values["jump"].to_numpy()]
    axes = axes or _new_axes(height=_features_height(tree))
    if image_shape is not None:
        pictures = values.to_numpy()[:MOST_PICTURES].reshape(-1, *image_shape)
        _draw_pictures(axes, pictures, labels)
        return axes
    extent = _extent(values.to_numpy())
    image = axes.imshow(
        values.to_numpy(), cmap="RdBu_r", vmin=-extent, vmax=extent, aspect="auto", interpolation="nearest"
    )
    drawing = axes.get_figure(root=True)
    assert drawing is not None
    bar = drawing.colorbar(image, ax=axes, label=traces.axis_label(str(values.name)), pad=0.02)
    bar.outline.set_visible(False)  # type: ignore[operator] - matplotlib types the outline wrongly
    axes.grid(False)
    axes.set(xlabel=traces.axis_label("feature"), ylabel="jump")
    axes.set_yticks(*_ticks(labels, most=30))
    places, names = _ticks([str(label) for label in values["feature"].to_numpy()], most=30)
    crowded = len(names) * max(map(len, names), default=0) > 90
    axes.set_xticks(places, names, rotation=45 if crowded else 0, ha="right" if crowded else "center")
    return axes


def figure(tree: xr.DataTree | xr.Dataset) -> Figure:
    """Draw all that a tree holds: the staircase, planes, the other curves of either side, and the features.

    Raises:
        InputError: The tree holds nothing that can be drawn.
    """
    panels: list[tuple[float, Callable[[Axes], Axes]]] = []
    names = traces.curve_names(tree)
    if traces.has_staircase(tree):
        panels.append((3.4, lambda axes: staircase(tree, axes)))
        names = [name for name in names if name != "loss"]
    panels += [(3.6, lambda axes, x=x, y=y: plane(tree, x, y, axes)) for x, y in traces.planes(tree)]
    panels += [(3.0, lambda axes, name=name: curves(tree, name, axes)) for name in names]
    if traces.has_features(tree):
        panels.append((_features_height(tree), lambda axes: features(tree, axes)))
    require(
        bool(panels),
        "the tree holds nothing that can be drawn",
        argument="tree",
        remedy="pass what predict, observe or compare return",
    )
    heights = [height for height, _ in panels]
    drawing = Figure(figsize=(7.2, sum(heights)), layout="constrained")
    grid = drawing.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
    for axes, (_, draw) in zip(grid[:, 0], panels, strict=True):
        draw(_styled(axes))
    return drawing


def save_figure(figure: Figure, path: str | PathLike[str]) -> Path:
    """Save a figure as PNG, SVG or PDF, whole or not at all; equal figures give equal files.

    Args:
        figure: The figure; that of some axes is `axes.get_figure()`.
        path: The file, whose suffix names the format.

    Returns:
        The path.

    Raises:
        InputError: The suffix is another, or the folder does not exist.
    """
    path = Path(path)
    require(
        path.suffix in _DATELESS,
        f"{path.name!r} is not named as a figure",
        argument="path",
        value=str(path),
        remedy=f"end the name in {', '.join(_DATELESS)}",
    )
    with written_beside(path) as partial:
        figure.savefig(partial, dpi=200, metadata=_DATELESS[path.suffix])
    return path


def _draw(axes: Axes, lines: Sequence[traces.Trace], name: str, log_x: bool, log_y: bool) -> None:
    labels = list(dict.fromkeys(line.label for line in lines))
    for line in lines:
        axes.plot(line.x, line.y, color=line.colour, **_stroke(line.side, line.alone, crowded=len(labels) > 1))
    axes.set(xlabel=traces.axis_label(lines[0].axis), ylabel=traces.axis_label(name))
    log_x = log_x or traces.is_logarithmic(lines)
    axes.set(xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
    handles = []
    for side in dict.fromkeys(line.side for line in lines):
        colour = _FAINT if len(labels) > 1 else next(line.colour for line in lines if line.side == side)
        handles.append(Line2D([], [], color=colour, label=side, **_stroke(side, True, crowded=False)))
    if len(labels) > 1:
        colours = {line.label: line.colour for line in lines}
        named = labels if len(labels) <= len(traces.PALETTE) else [labels[0], labels[-1]]
        handles += [Line2D([], [], color=colours[label], linewidth=4, label=_literal(label)) for label in named]
    axes.legend(handles=handles, frameon=False, fontsize="small")


def _stroke(side: str, alone: bool, *, crowded: bool) -> dict[str, Any]:
    """How a side is drawn: a pale broad line under a dark dashed one where both have the same colour."""
    if side == "predicted":
        return {
            "linestyle": (0, (4, 2)),
            "linewidth": 1.4 if alone else 0.8,
            "alpha": 1.0 if alone else 0.6,
            "zorder": 3,
        }
    if not alone:
        return {"linestyle": "-", "linewidth": 0.7, "alpha": 0.5, "zorder": 2}
    return {"linestyle": "-", "linewidth": 2.8 if crowded else 2.0, "alpha": 0.5 if crowded else 1.0, "zorder": 2}


def _number_jumps(axes: Axes, line: traces.Trace) -> None:
    """Write the number of each jump above it, except where numbers would run into each other."""
    corners = np.stack([line.x[2:-1:2], line.y[2:-1:2]], axis=1)
    places = axes.transAxes.inverted().transform(axes.transData.transform(corners))
    taken = np.array([-np.inf, np.inf])
    for number, (corner, place) in enumerate(zip(corners, places, strict=True), start=1):
        if np.any(np.abs(place - taken) > (0.025, 0.05)):
            axes.annotate(
                str(number), tuple(corner), (3, 2), textcoords="offset points", fontsize="x-small", color=_FAINT
            )
            taken = place


def _draw_pictures(axes: Axes, pictures: np.ndarray, labels: Sequence[str]) -> None:
    """Lay the pictures side by side in one image, a gap apart, with their numbers above them."""
    count, height, width = pictures.shape
    columns = _columns(count)
    gap_x, gap_y = max(1, round(width / 6)), max(1, round(height / 3.5))
    rows = math.ceil(count / columns)
    sheet = np.full((rows * (height + gap_y), columns * (width + gap_x) - gap_x), np.nan)
    for i, picture in enumerate(pictures):
        top, left = (i // columns) * (height + gap_y) + gap_y, (i % columns) * (width + gap_x)
        sheet[top : top + height, left : left + width] = picture / _extent(picture)
        axes.text(left + width / 2 - 0.5, top - 0.8, labels[i], ha="center", va="bottom", fontsize=10, color=_FAINT)
    axes.imshow(sheet, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
    axes.set_axis_off()


def _columns(count: int) -> int:
    """Columns of a sheet whose rows are as even as can be."""
    return math.ceil(count / math.ceil(count / _PICTURES_IN_A_ROW))


def _features_height(tree: xr.DataTree | xr.Dataset) -> float:
    values, image_shape = traces.learned_features(tree)
    jumps = values.sizes["jump"]
    if image_shape is None:
        return min(2.2 + 0.3 * jumps, 8.0)
    jumps = min(jumps, MOST_PICTURES)
    columns = _columns(jumps)
    return 7.0 / columns * image_shape[0] / image_shape[1] * 1.2 * math.ceil(jumps / columns)


def _extent(values: np.ndarray) -> float:
    return float(np.nanmax(np.abs(values), initial=0.0)) or 1.0


def _literal(text: str) -> str:
    """The text with no dollar sign that would start a formula."""
    return text.replace("$", r"\$")


def _ticks(labels: Sequence[str], *, most: int) -> tuple[list[int], list[str]]:
    places = list(range(0, len(labels), math.ceil(len(labels) / most) if labels else 1))
    return places, [_literal(label if len(label := labels[place]) <= 24 else f"{label[:23]}…") for place in places]


def _new_axes(height: float = 3.8) -> Axes:
    return _styled(Figure(figsize=(7.2, height), layout="constrained").add_subplot())


def _styled(axes: Axes) -> Axes:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#bbbbbb")
    axes.tick_params(which="both", color="#bbbbbb", labelcolor="#444444", labelsize=9)
    axes.grid(color="#eeeeee", linewidth=0.8)
    axes.set_axisbelow(True)
    return axes
