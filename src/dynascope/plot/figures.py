"""Figures of records, with predictions as dashed lines over solid observations.

Every function accepts labelled data and optionally the axes to draw on. It returns the axes and never displays a
figure. Without axes, the function creates a `matplotlib.figure.Figure` without pyplot, so no display is needed.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from dynascope.errors import InputError
from dynascope.plot.drawing import describe_chart, undeclared
from dynascope.plot.feature_drawing import draw_features, features_height, find_features
from dynascope.plot.lines import curve_names
from dynascope.plot.matplotlib_figure import WIDTH, caption_height, draw, draw_with_caption, new_axes, styled
from dynascope.results import from_tree
from dynascope.results.chart import Chart, Log
from dynascope.results.tree import AnyResult
from dynascope.results.whole_files import written_beside
from dynascope.validation import require

__all__ = ["curves", "draw_chart", "figure", "learned_features", "plane", "save_figure", "staircase"]

_LOG: dict[tuple[bool, bool], Log] = {(False, False): "", (True, False): "x", (False, True): "y", (True, True): "xy"}
_DATELESS = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def staircase(tree: AnyResult, axes: Axes | None = None, *, log_time: bool = False, log_loss: bool = False) -> Axes:
    """Draw the observed loss with the predicted plateaus (dashed) and the numbered jumps.

    Args:
        tree: A comparison, or a single record.
        axes: The axes to draw on; by default a new figure.
        log_time: Draw time on a logarithmic axis.
        log_loss: Draw the loss on a logarithmic axis.

    Returns:
        The axes.

    Raises:
        InputError: The result contains neither an observed loss nor predicted jumps.

    Example:
        >>> from dynascope.results import make_record
        >>> predicted = make_record(
        ...     {"jump_time": (["jump"], [3.0]), "loss_before": (["jump"], [1.0]), "loss_after": (["jump"], [0.2])},
        ...     {"jump": [1]},
        ... )
        >>> staircase(predicted).get_ylabel()
        'loss'
    """
    return _draw(tree, Chart("loss", staircase=True, log=_LOG[log_time, log_loss]), axes)


def curves(
    tree: AnyResult,
    variable: str,
    axes: Axes | None = None,
    *,
    log_time: bool = False,
    log_values: bool = False,
) -> Axes:
    """Draw a variable over time, with one colour for each mode, layer or other member.

    Args:
        tree: A comparison, or a single record.
        variable: Name of the variable, in either or both records.
        axes: The axes to draw on; by default a new figure.
        log_time: Draw time on a logarithmic axis.
        log_values: Draw the values on a logarithmic axis; by default only for approximate power laws.

    Returns:
        The axes.

    Raises:
        InputError: Neither record has the variable over time.

    Example:
        >>> from dynascope.results import make_record
        >>> observed = make_record({"accuracy": (["time"], [0.5, 1.0])}, {"time": [0.0, 1.0]})
        >>> len(curves(observed, "accuracy").lines)
        1
    """
    known = curve_names(from_tree(tree))
    require(
        variable in known,
        f"the result contains no curve {variable!r}",
        argument="variable",
        value=variable,
        remedy=f"choose from {', '.join(known)}" if known else "pass a result with a variable over time",
    )
    return _draw(tree, Chart(variable, over="", log=_LOG[log_time, log_values]), axes)


def plane(tree: AnyResult, horizontal: str, vertical: str, axes: Axes | None = None) -> Axes:
    """Draw one variable against another, as paths that start at a dot.

    Args:
        tree: A comparison, or a single record.
        horizontal: Name of the x variable, over time.
        vertical: Name of the y variable, with the same dimensions.
        axes: The axes to draw on; by default a new figure.

    Returns:
        The axes.

    Raises:
        InputError: Neither record has both variables with the same dimensions.

    Example:
        >>> from dynascope.results import make_record
        >>> values = {"first_weight": (["time"], [0.0, 1.0]), "output": (["time"], [0.5, 2.0])}
        >>> plane(make_record(values, {"time": [0.0, 1.0]}), "first_weight", "output").get_xlabel()
        'first weight'
    """
    return _draw(tree, Chart(vertical, over=horizontal), axes)


def draw_chart(tree: AnyResult, chart: Chart, figure: Figure | SubFigure | None = None) -> Figure | SubFigure:
    """Draw a declared chart, with its caption below it.

    Args:
        tree: A comparison, or a single record.
        chart: The declared chart.
        figure: The figure to draw on; by default a new figure.

    Returns:
        The figure.

    Raises:
        InputError: The result lacks a variable that the chart names.

    Example:
        >>> from dynascope.results import make_record
        >>> record = make_record({"loss": (["time"], [1.0, 0.1])}, {"time": [0.0, 1.0]})
        >>> draw_chart(record, Chart("loss", log="y")).axes[0].get_yscale()
        'log'
    """
    figure = figure or Figure(figsize=(WIDTH, caption_height(chart)), layout="constrained")
    draw_with_caption(describe_chart(tree, chart), figure)
    return figure


def learned_features(tree: AnyResult, axes: Axes | None = None) -> Axes:
    """Show the features learned at each jump, as images if the inputs are images and otherwise as a heat map.

    Red is positive, blue negative, white zero. Each image has its own colour scale; a heat map has a single one.

    Args:
        tree: A comparison, or a predicted record with `input_feature` or `coefficient` over the jumps.
        axes: The axes to draw on; by default a new figure.

    Returns:
        The axes.

    Raises:
        InputError: The prediction contains no features.

    Example:
        >>> from dynascope.results import make_record
        >>> predicted = make_record(
        ...     {"coefficient": (["jump", "feature"], [[0.0, 2.0], [1.0, 2.0]])},
        ...     {"jump": [1, 2], "feature": ["age", "mass"]},
        ...     attributes={"theory": "an example"},
        ... )
        >>> [label.get_text() for label in learned_features(predicted).get_xticklabels()]
        ['age', 'mass']
    """
    found = find_features(tree)
    if found is None:
        raise InputError(
            "the prediction contains no features",
            argument="tree",
            remedy="pass a prediction that contains input_feature, learned_direction or coefficient",
        )
    return draw_features(found, axes or new_axes(height=features_height(found)))


def figure(tree: AnyResult) -> Figure:
    """Draw the declared charts of a result; without charts, draw the staircase, planes, curves and features.

    Args:
        tree: The result of `predict`, `observe` or `compare`, or a record.

    Raises:
        InputError: The result contains nothing to draw, or lacks a variable of a declared chart.

    Example:
        >>> from dynascope.results import make_record
        >>> observed = make_record({"accuracy": (["time"], [0.5, 1.0])}, {"time": [0.0, 1.0]})
        >>> len(figure(observed).axes)
        1
    """
    view = from_tree(tree)
    charts = view.charts
    if charts:
        heights = [caption_height(chart) for chart in charts]
        whole = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
        parts = whole.subfigures(len(charts), 1, squeeze=False, height_ratios=heights)
        for chart, part in zip(charts, parts[:, 0], strict=True):
            draw_chart(view, chart, part)
        return whole
    drawings, learned = undeclared(view), find_features(view)
    heights = [3.0 if each.chart.over == "" else 3.4 if each.chart.staircase else 3.6 for each in drawings]
    heights += [] if learned is None else [features_height(learned)]
    require(
        heights,
        "the result contains nothing to draw",
        argument="tree",
        remedy="pass the result of predict, observe or compare",
    )
    whole = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
    grid = [styled(axes) for axes in whole.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]]
    for axes, drawing in zip(grid, drawings, strict=False):
        draw(drawing, [axes])
    if learned is not None:
        draw_features(learned, grid[-1])
    return whole


def save_figure(figure: Figure, path: str | PathLike[str]) -> Path:
    """Save a figure as PNG, SVG or PDF.

    The file is written atomically, and equal figures produce identical files.

    Args:
        figure: The figure, for example `axes.get_figure()`.
        path: The file; its suffix determines the format.

    Returns:
        The path.

    Raises:
        InputError: The suffix is not supported, or the folder does not exist.

    Example:
        >>> import tempfile
        >>> from dynascope.results import make_record
        >>> observed = make_record({"accuracy": (["time"], [0.5, 1.0])}, {"time": [0.0, 1.0]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_figure(figure(observed), f"{folder}/accuracy.png").name
        'accuracy.png'
    """
    path = Path(path)
    require(
        path.suffix in _DATELESS,
        f"the file name {path.name!r} has no supported suffix",
        argument="path",
        value=str(path),
        remedy=f"choose one of the suffixes {', '.join(_DATELESS)}",
    )
    with written_beside(path) as partial:
        figure.savefig(partial, dpi=200, metadata=_DATELESS[path.suffix])
    return path


def _draw(tree: AnyResult, chart: Chart, axes: Axes | None) -> Axes:
    axes = axes or new_axes()
    draw(describe_chart(tree, chart, automatic=True), [axes])
    return axes
