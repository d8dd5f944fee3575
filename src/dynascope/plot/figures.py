"""Figures of records: the prediction dashed over the solid observation.

Every function takes labelled data and, if wanted, the axes to draw on; it returns the axes and never shows anything.
Without axes it makes a bare `matplotlib.figure.Figure`, which touches neither pyplot nor a screen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dynascope.arguments import require
from dynascope.plot import traces
from dynascope.plot.axes import axis_label, count_ticks, is_crowded, is_logarithmic, is_power_law, literal
from dynascope.plot.chart import from_attributes
from dynascope.plot.chart_figure import chart_height, draw_chart
from dynascope.plot.learned_features import draw_features, features_height, find_features, learned_features
from dynascope.plot.style import name_lines, new_axes, number_jumps, stroke, styled
from dynascope.results import TreeView
from dynascope.results.tree_view import Tree
from dynascope.results.whole_files import written_beside

__all__ = ["curves", "features", "figure", "plane", "save_figure", "staircase"]

_DATELESS = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def staircase(tree: Tree, axes: Axes | None = None, *, log_time: bool = False, log_loss: bool = False) -> Axes:
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
        >>> from dynascope.results import make_record
        >>> predicted = make_record(
        ...     {"jump_time": (["jump"], [3.0]), "loss_before": (["jump"], [1.0]), "loss_after": (["jump"], [0.2])},
        ...     {"jump": [1]},
        ... )
        >>> staircase(predicted).get_ylabel()
        'loss'
    """
    lines = traces.staircase(tree)
    axes = axes or new_axes()
    _draw(axes, lines, "loss", log_time, log_loss)
    steps = [line for line in lines if line.side == "predicted"]
    if len(steps) == 1:
        number_jumps(axes, steps[0])
    return axes


def curves(
    tree: Tree,
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
        >>> from dynascope.results import make_record
        >>> observed = make_record({"accuracy": (["time"], [0.5, 1.0])}, {"time": [0.0, 1.0]})
        >>> len(curves(observed, "accuracy").lines)
        1
    """
    lines = traces.curves(tree, variable)
    axes = axes or new_axes()
    _draw(axes, lines, variable, log_time, log_values or is_power_law(lines))
    return axes


def plane(tree: Tree, horizontal: str, vertical: str, axes: Axes | None = None) -> Axes:
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
        >>> from dynascope.results import make_record
        >>> values = {"first_weight": (["time"], [0.0, 1.0]), "output": (["time"], [0.5, 2.0])}
        >>> plane(make_record(values, {"time": [0.0, 1.0]}), "first_weight", "output").get_xlabel()
        'first weight'
    """
    lines = traces.plane(tree, horizontal, vertical)
    axes = axes or new_axes()
    _draw(axes, lines, vertical, False, False)
    for line in lines:
        axes.plot(line.x[:1], line.y[:1], "o", color=line.colour, markersize=4)
    return axes


def features(tree: Tree, axes: Axes | None = None) -> Axes:
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
        >>> from dynascope.results import make_record
        >>> predicted = make_record(
        ...     {"coefficient": (["jump", "feature"], [[0.0, 2.0], [1.0, 2.0]])},
        ...     {"jump": [1, 2], "feature": ["age", "mass"]},
        ...     attributes={"theory": "an example"},
        ... )
        >>> [label.get_text() for label in features(predicted).get_xticklabels()]
        ['age', 'mass']
    """
    found = learned_features(tree)
    return draw_features(found, axes or new_axes(height=features_height(found)))


def figure(tree: Tree) -> Figure:
    """Draw the figures that a tree declares, or else all that it holds: staircase, planes, curves and features.

    Args:
        tree: What `compare` returns, or a record of one side alone. It declares figures by its attribute `figures`, in
            which `to_attributes` wrote charts.

    Raises:
        InputError: The tree holds nothing that can be drawn, or lacks what a declared figure names.
    """
    view = TreeView.of(tree)
    declared = from_attributes(view.attributes.get("figures", []))
    if declared:
        heights = [chart_height(chart) for chart in declared]
        drawing = Figure(figsize=(7.2, sum(heights)), layout="constrained")
        parts = drawing.subfigures(len(declared), 1, squeeze=False, height_ratios=heights)[:, 0]
        for chart, part in zip(declared, parts, strict=True):
            draw_chart(view, chart, part)
        return drawing
    panels: list[tuple[float, Callable[[Axes], Axes]]] = []
    names = traces.curve_names(view)
    if view.staircase is not None:
        crowded = is_crowded(traces.staircase(view))
        panels.append((3.4, lambda axes: staircase(view, axes, log_time=crowded)))
        names = [name for name in names if name != "loss"]
    panels += [(3.6, lambda axes, x=x, y=y: plane(view, x, y, axes)) for x, y in traces.planes(view)]
    panels += [(3.0, lambda axes, name=name: curves(view, name, axes)) for name in names]
    learned = find_features(view)
    if learned is not None:
        panels.append((features_height(learned), lambda axes: draw_features(learned, axes)))
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
        draw(styled(axes))
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
        axes.plot(line.x, line.y, color=line.colour, **stroke(line.side, line.alone, crowded=len(labels) > 1))
    axes.set_xlabel(literal(lines[0].x_label or axis_label(lines[0].axis)))
    axes.set_ylabel(literal(lines[0].y_label or axis_label(name)))
    log_x = log_x or is_logarithmic(lines)
    axes.set(xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
    if (ticks := count_ticks(lines)) and not log_x:
        axes.set_xticks(list(ticks), list(ticks.values()))
    name_lines(axes, lines)
