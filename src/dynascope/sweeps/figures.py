"""Figures of a sweep: curves with bands for one axis, maps for two axes, and small multiples for three."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from dynascope.comparison.interval import student_half
from dynascope.results import describe

__all__ = ["caption_of", "draw_number", "free_axes"]

_SEEDS = "seed"
_COLUMNS, _MOST_MAPS, _FEW = 3, 12, 9
_WIDTH, _HEIGHT = 7.5, 4.6  # inches, of one panel
_LARGE_RATIO, _EVEN = 8.0, 0.05  # range of positive values, and unevenness of their ratios, on a logarithmic axis
_COLOUR = "#0072b2"


def free_axes(values: xr.DataArray) -> list[str]:
    """The axes that are drawn, without the seeds, over which values are averaged, and axes with one value.

    Example:
        >>> free_axes(xr.DataArray(np.zeros((3, 2, 1)), dims=["scale", "seed", "width"]))
        ['scale']
    """
    return [str(name) for name in values.dims if name != _SEEDS and values.sizes[name] > 1]


def draw_number(values: xr.DataArray) -> Figure | None:
    """Draw a number over the axes of the sweep; None if there is nothing to draw.

    One free axis gives a curve of the mean over seeds with its 95 % confidence interval. Two give a map of the mean,
    and three give one map for each value of the third. Of further axes, the middle value is drawn.
    """
    names = free_axes(values)
    values = values.squeeze([name for name in values.dims if values.sizes[name] == 1 and name != _SEEDS])
    for name in names[3:]:
        values = values.isel({name: values.sizes[name] // 2})
    mean = values.mean(_SEEDS) if _SEEDS in values.dims else values
    if not names or not np.isfinite(mean.to_numpy()).any():
        return None
    if len(names) == 1:
        return _curve(values, mean, names[0])
    panels = [mean] if len(names) == 2 else [mean.isel({names[2]: k}) for k in _places(mean.sizes[names[2]])]
    return _maps(panels, names)


def caption_of(values: xr.DataArray) -> str:
    """Describe how the number is drawn.

    Example:
        >>> caption_of(xr.DataArray(np.zeros((3, 2)), dims=["scale", "seed"], name="loss"))
        'Mean over 2 seeds, with the 95 % confidence interval.'
    """
    names, seeds = free_axes(values), values.sizes.get(_SEEDS, 1)
    failed = " (fewer where cells failed)" if np.isnan(values.to_numpy()).any() else ""
    parts = [f"Mean over {seeds} seeds{failed}" + (", with the 95 % confidence interval" if len(names) == 1 else "")]
    parts = parts if seeds > 1 else []
    if len(names) > 2:
        parts.append(f"One map for each value of {names[2]}")
    parts += [f"{name} = {values[name].to_numpy()[values.sizes[name] // 2]}" for name in names[3:]]
    if len(names) > 1 and not np.isfinite(values.to_numpy()).all():
        parts.append("Cells without a finite value are white")
    return ". ".join(parts) + "." * bool(parts)


def _curve(values: xr.DataArray, mean: xr.DataArray, name: str) -> Figure:
    figure = Figure((_WIDTH, _HEIGHT), layout="constrained")
    axes = figure.add_subplot()
    labels = mean[name].to_numpy()
    positions = labels if labels.dtype.kind in "fiu" else np.arange(len(labels))
    axes.plot(positions, mean.to_numpy(), "o-", color=_COLOUR)
    if _SEEDS in values.dims and values.sizes[_SEEDS] > 1:
        rows = values.transpose(name, _SEEDS).to_numpy()
        half = np.array([_half(row[np.isfinite(row)]) for row in rows])
        axes.fill_between(positions, mean.to_numpy() - half, mean.to_numpy() + half, color=_COLOUR, alpha=0.2, lw=0)
    if positions is not labels:
        axes.set_xticks(positions, labels.astype(str))
    elif _is_logarithmic(labels):
        axes.set_xscale("log")
    finite = mean.to_numpy()[np.isfinite(mean.to_numpy())]
    if finite.min() > 0 and finite.max() > 100 * finite.min():
        axes.set_yscale("log")
        axes.set_ylim(finite.min() / 3, 3 * finite.max())  # an interval that includes zero has no lower end here
    axes.set_xlabel(describe(name)[0])
    axes.set_ylabel(_label(mean))
    axes.grid(alpha=0.2)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _half(values: np.ndarray) -> float:
    return student_half(float(np.var(values, ddof=1)), len(values)) if len(values) > 1 else math.nan


def _maps(panels: Sequence[xr.DataArray], names: Sequence[str]) -> Figure:
    columns = min(len(panels), _COLUMNS)
    rows = -(-len(panels) // columns)
    width = _WIDTH if columns == 1 else 3.4 * columns
    figure = Figure((width, rows * (_HEIGHT if columns == 1 else 3.0)), layout="constrained")
    grid = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel()
    everything = np.concatenate([each.to_numpy().ravel() for each in panels])
    finite = everything[np.isfinite(everything)]
    scale = Normalize(finite.min(), finite.max())
    image = ScalarMappable(scale, "viridis")
    for axes, panel in zip(grid, panels, strict=False):
        _map(axes, panel.transpose(names[1], names[0]), scale)
        if len(panels) > 1:
            axes.set_title(f"{names[2]} = {panel[names[2]].item()}", fontsize="medium")
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    figure.colorbar(image, ax=list(grid), label=_label(panels[0]))
    return figure


def _map(axes: Axes, values: xr.DataArray, scale: Normalize) -> None:
    sides = []
    for name, put in zip(values.dims, (axes.set_ylabel, axes.set_xlabel), strict=True):
        put(describe(str(name))[0])
        labels = values[name].to_numpy()
        sides.append(labels if labels.dtype.kind in "fiu" else np.arange(len(labels)))
    edges = [_edges(side) for side in sides]
    drawn = np.where(np.isfinite(values), values, np.nan)
    axes.pcolormesh(edges[1], edges[0], drawn, norm=scale, cmap="viridis")
    for name, side, set_scale, set_ticks in zip(
        values.dims, sides, (axes.set_yscale, axes.set_xscale), (axes.set_yticks, axes.set_xticks), strict=True
    ):
        labels = values[name].to_numpy()
        if labels.dtype.kind not in "fiu":
            set_ticks(side, labels.astype(str))
            continue
        if _is_logarithmic(labels):
            set_scale("log")
        if len(labels) <= _FEW:
            set_ticks(labels, [f"{each:.3g}" for each in labels])
            set_ticks([], minor=True)


def _edges(centres: np.ndarray) -> np.ndarray:
    """Boundaries between cells, halfway between their centres on the scale of the axis."""
    logarithmic = _is_logarithmic(centres)
    points = np.log(centres) if logarithmic else centres.astype(float)
    middle = (points[1:] + points[:-1]) / 2
    edges = np.concatenate([[2 * points[0] - middle[0]], middle, [2 * points[-1] - middle[-1]]])
    return np.exp(edges) if logarithmic else edges


def _is_logarithmic(labels: np.ndarray) -> bool:
    """Whether values are spaced by equal factors over a large range."""
    if labels.dtype.kind not in "fiu" or len(labels) < 3 or labels.min() <= 0:
        return False
    ratios = np.diff(np.log(labels))
    return bool(labels.max() >= _LARGE_RATIO * labels.min() and np.ptp(ratios) <= _EVEN * np.abs(ratios).max())


def _places(size: int) -> list[int]:
    """At most twelve positions, evenly spaced."""
    return sorted(set(np.linspace(0, size - 1, min(size, _MOST_MAPS)).round().astype(int).tolist()))


def _label(values: xr.DataArray) -> str:
    words, units = values.attrs.get("long_name", str(values.name)), values.attrs.get("units", "1")
    return words if units in ("1", "") else f"{words} [{units}]"
