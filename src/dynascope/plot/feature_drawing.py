"""Find the features learned at each jump, and draw them as images or as a heat map."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from dynascope.plot.lines import FAINT
from dynascope.plot.matplotlib_figure import literal
from dynascope.results import describe, from_tree
from dynascope.results.tree import AnyResult

__all__ = ["MOST_PICTURES", "LearnedFeatures", "draw_features", "extent", "features_height", "find_features"]

MOST_PICTURES = 24
_PICTURES_IN_A_ROW = 8
_MOST_TICKS = 30
_BAR = 18  # characters beside a colour bar, whose height is proportional to the number of jumps
_OF_IMAGES = ("input_feature", "coefficient")
_OF_TABLES = ("learned_direction", *_OF_IMAGES)


class LearnedFeatures(NamedTuple):
    """The learned features of all jumps.

    Attributes:
        name: The variable of the prediction.
        values: Shape (jump, feature); for an ensemble, the values of the first member.
        jumps: The label of each jump.
        features: The name of each input.
        image_shape: (height, width) if the inputs are images.
    """

    name: str
    values: Float[np.ndarray, "jump feature"]
    jumps: list[str]
    features: list[str]
    image_shape: tuple[int, int] | None

    @property
    def pictures(self) -> list[np.ndarray]:
        """The first features as images, each divided by its largest magnitude."""
        return [each.reshape(self.image_shape or (1, -1)) / extent(each) for each in self.values[:MOST_PICTURES]]


def find_features(tree: AnyResult) -> LearnedFeatures | None:
    """Return the predicted features of all jumps, or None if the prediction contains none."""
    view = from_tree(tree)
    predicted = view.predicted
    if predicted is None:
        return None
    height, width = predicted.attrs.get("image_shape") or (0, 0)
    is_image = height > 0 and height * width == predicted.sizes.get("feature", 0)
    # Images show the weights; other inputs are compared by their contributions.
    for name in _OF_IMAGES if is_image else _OF_TABLES:
        if name in predicted and "jump" in predicted[name].dims:
            values = predicted[name]
            values = values.isel({each: 0 for each in values.dims if each not in ("jump", "feature")})
            jumps, features = ([str(each) for each in values[axis].to_numpy()] for axis in ("jump", "feature"))
            numbers = values.transpose("jump", "feature").to_numpy()
            return LearnedFeatures(name, numbers, jumps, features, (height, width) if is_image else None)
    return None


def draw_features(found: LearnedFeatures, axes: Axes) -> Axes:
    """Draw features, as images if the inputs are images and otherwise as a heat map."""
    if found.image_shape is not None:
        _draw_pictures(axes, np.stack(found.pictures), found.jumps)
        return axes
    most = extent(found.values)
    image = axes.imshow(found.values, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto", interpolation="nearest")
    drawing = axes.get_figure(root=True)
    assert drawing is not None
    bar = drawing.colorbar(image, ax=axes, label=textwrap.fill(describe(found.name)[0], _BAR), pad=0.02)
    bar.outline.set_visible(False)  # type: ignore[operator] - matplotlib types the outline wrongly
    axes.grid(False)
    axes.set(xlabel=describe("feature")[0], ylabel="jump")
    axes.set_yticks(*_ticks(found.jumps))
    places, names = _ticks(found.features)
    crowded = len(names) * max(map(len, names), default=0) > 70
    axes.set_xticks(places, names, rotation=45 if crowded else 0, ha="right" if crowded else "center")
    return axes


def features_height(found: LearnedFeatures) -> float:
    """Return the height of the figure in inches."""
    if found.image_shape is None:
        return min(2.2 + 0.3 * len(found.jumps), 8.0)
    rows, columns = _grid(min(len(found.jumps), MOST_PICTURES))
    return 7.0 / columns * found.image_shape[0] / found.image_shape[1] * 1.2 * rows


def extent(values: np.ndarray) -> float:
    """Return the largest magnitude; 1 if all values are zero."""
    return float(np.nanmax(np.abs(values), initial=0.0)) or 1.0


def _draw_pictures(axes: Axes, pictures: np.ndarray, labels: Sequence[str]) -> None:
    """Arrange the images in one sheet, separated by gaps, with their numbers above them."""
    count, height, width = pictures.shape
    rows, columns = _grid(count)
    gap_x, gap_y = max(1, round(width / 6)), max(1, round(height / 3.5))
    sheet = np.full((rows * (height + gap_y), columns * (width + gap_x) - gap_x), np.nan)
    for i, picture in enumerate(pictures):
        top, left = (i // columns) * (height + gap_y) + gap_y, (i % columns) * (width + gap_x)
        sheet[top : top + height, left : left + width] = picture
        axes.text(left + width / 2 - 0.5, top - 0.8, labels[i], ha="center", va="bottom", fontsize=10, color=FAINT)
    axes.imshow(sheet, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
    axes.set_axis_off()


def _grid(count: int) -> tuple[int, int]:
    """Return the numbers of rows and columns of a sheet with rows of nearly equal length."""
    rows = math.ceil(count / _PICTURES_IN_A_ROW)
    return rows, math.ceil(count / rows)


def _ticks(labels: Sequence[str]) -> tuple[list[int], list[str]]:
    places = list(range(0, len(labels), math.ceil(len(labels) / _MOST_TICKS) or 1))
    return places, [literal(label if len(label := labels[place]) <= 24 else f"{label[:23]}…") for place in places]
