"""What each jump learns, as small pictures or as a table of colours, which fit any screen and any paper."""

from __future__ import annotations

import base64
import io
import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.image import imsave

from dynascope.plot.learned_features import MOST_PICTURES, find_features
from dynascope.results import TreeView
from dynascope.results.numbers import number

__all__ = ["Cell", "Patterns", "patterns"]

_MOST_INPUTS = 40  # rows of a table
_MOST_WRITTEN = 8  # jumps beside each other, up to which there is room for their numbers
_RED, _BLUE = (0.84, 0.38, 0.30), (0.26, 0.58, 0.76)
_TITLES = {
    "input_feature": "The input pattern that each jump learns",
    "learned_direction": "How much each input takes part in what each jump learns, in spreads of the inputs",
    "coefficient": "The linear map after each jump",
}


class Cell(NamedTuple):
    """One number of the table.

    Attributes:
        share: Its size, as a percentage of the largest.
        positive: Whether it is.
        number: It in words.
    """

    share: int
    positive: bool
    number: str


class Patterns(NamedTuple):
    """What is learned, over the jumps.

    Attributes:
        caption: What it shows.
        jumps: The labels of the jumps.
        pictures: Of each jump, if the inputs are images; the paper shows through where they are zero.
        rows: Of each input its name and a number for each jump, if they are not.
        written: Whether there is room for the numbers.
        in_spreads: Whether they count inputs in their spreads, as the words for the jumps do.
    """

    caption: str
    jumps: list[str]
    pictures: list[str]
    rows: list[tuple[str, list[Cell]]]
    written: bool
    in_spreads: bool

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return sum(map(len, self.pictures)) + sum(len(name) + 90 * len(cells) for name, cells in self.rows)


def patterns(view: TreeView) -> Patterns | None:
    """What is learned at each jump, if the prediction names it."""
    found = find_features(view)
    if found is None:
        return None
    values, image_shape = found
    jumps, numbers = [str(each) for each in values["jump"].to_numpy()], np.nan_to_num(values.to_numpy())
    said = [f"{_TITLES[str(values.name)]}. Red is positive, blue negative."]
    said.append("All have one scale." if image_shape is None else "Each picture has a scale of its own.")
    if len(jumps) > MOST_PICTURES:
        said.append(f"The first {MOST_PICTURES} of {len(jumps)} are shown.")
    jumps, numbers = jumps[:MOST_PICTURES], numbers[:MOST_PICTURES]
    if image_shape is not None:
        pictures = [_picture(each.reshape(image_shape)) for each in numbers]
        return Patterns(" ".join(said), jumps, pictures, [], False, False)
    names = [str(each) for each in values["feature"].to_numpy()]
    kept = np.arange(len(names))
    if len(names) > _MOST_INPUTS:
        kept = np.sort(np.argsort(-np.abs(numbers).max(axis=0, initial=0.0), kind="stable")[:_MOST_INPUTS])
        said.append(f"Of {len(names)} inputs those {_MOST_INPUTS} are shown that take part the most.")
    extent = _extent(numbers)
    rows = [(names[i], [_cell(float(value), extent) for value in numbers[:, i]]) for i in kept]
    return Patterns(" ".join(said), jumps, [], rows, len(jumps) <= _MOST_WRITTEN, values.name == "learned_direction")


def _cell(value: float, extent: float) -> Cell:
    # What is beyond two digits of the largest is not seen in its colour either; zero has no sign.
    seen = round(value, 1 - math.floor(math.log10(extent))) + 0.0
    return Cell(round(100 * abs(value) / extent), value > 0, number(seen, 2))


def _picture(values: Float[np.ndarray, "height width"]) -> str:
    shares = values / _extent(values)
    colours = np.where(shares[..., None] > 0, _RED, _BLUE)
    drawn = io.BytesIO()
    imsave(drawn, np.concatenate([colours, np.abs(shares)[..., None]], axis=-1), format="png", metadata={})
    return "data:image/png;base64," + base64.b64encode(drawn.getvalue()).decode()


def _extent(values: np.ndarray) -> float:
    return float(np.abs(values).max(initial=0.0)) or 1.0
