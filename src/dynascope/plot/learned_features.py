"""What is learned at each jump: found in a tree, and drawn as pictures or as a heat map."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from dynascope.arguments import require
from dynascope.plot.axes import axis_label, literal
from dynascope.plot.traces import FAINT
from dynascope.results import TreeView
from dynascope.results.tree_view import Tree

__all__ = [
    "MOST_PICTURES",
    "LearnedFeatures",
    "draw_features",
    "features_height",
    "find_features",
    "learned_features",
]

MOST_PICTURES = 24
_PICTURES_IN_A_ROW = 8
_BAR = 18  # letters beside a colour bar, which is as short as there are few jumps
_OF_IMAGES = ("input_feature", "coefficient")
_OF_TABLES = ("learned_direction", *_OF_IMAGES)


class LearnedFeatures(NamedTuple):
    """What is learned at each jump.

    Attributes:
        values: Over (jump, feature); of an ensemble those of the first member.
        image_shape: (height, width) if the inputs are images.
    """

    values: xr.DataArray
    image_shape: tuple[int, int] | None


def find_features(tree: Tree) -> LearnedFeatures | None:
    """What the prediction says is learned at each jump, or None if it names no features."""
    view = TreeView.of(tree)
    predicted = view.predicted
    if predicted is None:
        return None
    height, width = {**predicted.attrs, **view.setup}.get("image_shape") or (0, 0)
    is_image = height > 0 and height * width == predicted.sizes.get("feature", 0)
    # An image is seen as the weights are; other inputs are compared by what they contribute.
    known = [name for name in (_OF_IMAGES if is_image else _OF_TABLES) if name in predicted]
    names = [name for name in known if "jump" in predicted[name].dims]
    if not names:
        return None
    values = predicted[names[0]]
    values = values.isel({name: 0 for name in values.dims if name not in ("jump", "feature")})
    return LearnedFeatures(values.transpose("jump", "feature"), (height, width) if is_image else None)


def learned_features(tree: Tree) -> LearnedFeatures:
    """What the prediction says is learned at each jump.

    Raises:
        InputError: The prediction names no features.
    """
    found = find_features(tree)
    require(
        found is not None,
        "the prediction names no features",
        argument="tree",
        remedy="pass a tree whose predicted side has input_feature, learned_direction or coefficient",
    )
    assert found is not None
    return found


def draw_features(found: LearnedFeatures, axes: Axes) -> Axes:
    """Draw them on the axes: pictures where the inputs are images, else a heat map."""
    values, image_shape = found
    labels = [str(label) for label in values["jump"].to_numpy()]
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
    bar = drawing.colorbar(image, ax=axes, label=textwrap.fill(axis_label(str(values.name)), _BAR), pad=0.02)
    bar.outline.set_visible(False)  # type: ignore[operator] - matplotlib types the outline wrongly
    axes.grid(False)
    axes.set(xlabel=axis_label("feature"), ylabel="jump")
    axes.set_yticks(*_ticks(labels, most=30))
    places, names = _ticks([str(label) for label in values["feature"].to_numpy()], most=30)
    crowded = len(names) * max(map(len, names), default=0) > 70
    axes.set_xticks(places, names, rotation=45 if crowded else 0, ha="right" if crowded else "center")
    return axes


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
        axes.text(left + width / 2 - 0.5, top - 0.8, labels[i], ha="center", va="bottom", fontsize=10, color=FAINT)
    axes.imshow(sheet, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
    axes.set_axis_off()


def _columns(count: int) -> int:
    """Columns of a sheet whose rows are as even as can be."""
    return math.ceil(count / math.ceil(count / _PICTURES_IN_A_ROW))


def features_height(found: LearnedFeatures) -> float:
    """Inches that they need on a page of seven."""
    values, image_shape = found
    jumps = values.sizes["jump"]
    if image_shape is None:
        return min(2.2 + 0.3 * jumps, 8.0)
    jumps = min(jumps, MOST_PICTURES)
    columns = _columns(jumps)
    return 7.0 / columns * image_shape[0] / image_shape[1] * 1.2 * math.ceil(jumps / columns)


def _extent(values: np.ndarray) -> float:
    return float(np.nanmax(np.abs(values), initial=0.0)) or 1.0


def _ticks(labels: Sequence[str], *, most: int) -> tuple[list[int], list[str]]:
    places = list(range(0, len(labels), math.ceil(len(labels) / most) if labels else 1))
    return places, [literal(label if len(label := labels[place]) <= 24 else f"{label[:23]}…") for place in places]
