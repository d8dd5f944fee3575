"""The features learned at each jump, as small images or as a colour-coded table."""

from __future__ import annotations

import base64
import io
import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.image import imsave

from dynascope.plot.feature_drawing import MOST_PICTURES, extent, find_features
from dynascope.results import Result
from dynascope.results.numbers import number

__all__ = ["Cell", "Effect", "Patterns", "patterns"]

_MOST_INPUTS = 40  # rows of a table
_MOST_OUTPUTS = 10  # rows of effects
_MOST_WRITTEN = 8  # columns up to which the cells show numbers
_RED, _BLUE = (0.84, 0.38, 0.30), (0.26, 0.58, 0.76)
_TITLES = {
    "input_feature": "Input pattern learned at each jump",
    "learned_direction": "Contribution of each input to the learned feature, in standard deviations of the inputs",
    "coefficient": "Linear map after each jump",
}


class Cell(NamedTuple):
    """A number in the table of learned features.

    Attributes:
        share: Magnitude of the number, as a percentage of the largest.
        positive: Whether the number is positive.
        number: The number as text.
    """

    share: int
    positive: bool
    number: str


class Effect(NamedTuple):
    """The effect of a new neuron on one output.

    Attributes:
        raises: Whether the neuron raises the output for inputs on which it is active.
        number: The size of the effect as text.
    """

    raises: bool
    number: str


class Patterns(NamedTuple):
    """The learned features of all jumps, as shown on a page.

    Attributes:
        caption: The caption.
        jumps: The labels of the jumps.
        pictures: One image per jump if the inputs are images, transparent where the feature is zero.
        rows: If the inputs are not images, the name of each input and its contribution at each jump.
        written: Whether the cells show numbers.
        in_spreads: Whether the numbers are in standard deviations of the inputs.
        effects: If the effect of the new neurons is known, the name of each output and the effect for each jump; None
            for a jump without a new neuron of known effect.
    """

    caption: str
    jumps: list[str]
    pictures: list[str]
    rows: list[tuple[str, list[Cell]]]
    written: bool
    in_spreads: bool
    effects: list[tuple[str, list[Effect | None]]]

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        rows = [*self.rows, *self.effects]
        return sum(map(len, self.pictures)) + sum(len(name) + 90 * len(cells) for name, cells in rows)


def patterns(view: Result) -> Patterns | None:
    """Describe the features learned at each jump; returns None if the prediction contains no features."""
    found = find_features(view)
    if found is None:
        return None
    caption = [f"{_TITLES[found.name]}. Red is positive, blue negative."]
    images = found.image_shape is not None
    caption.append("Each picture has its own colour scale." if images else "All inputs share one colour scale.")
    settled = view.predicted is not None and "settled_direction" in view.predicted and found.name != "coefficient"
    if settled:
        caption.append(
            f"{'Each picture' if images else 'Each column'} shows the weights of the new neuron on the plateau after "
            "the jump. If the inputs are correlated, these weights can differ from those at the activation."
        )
    jumps, numbers = found.jumps[:MOST_PICTURES], np.nan_to_num(found.values[:MOST_PICTURES])
    if len(found.jumps) > MOST_PICTURES:
        caption.append(f"Only the first {MOST_PICTURES} of {len(found.jumps)} jumps are shown.")
    if found.image_shape is not None:
        pictures = [_picture(np.nan_to_num(each)) for each in found.pictures]
        return Patterns(" ".join(caption), jumps, pictures, [], False, False, [])
    kept = np.arange(len(found.features))
    if len(kept) > _MOST_INPUTS:
        kept = np.sort(np.argsort(-np.abs(numbers).max(axis=0, initial=0.0), kind="stable")[:_MOST_INPUTS])
        caption.append(
            f"Only the {_MOST_INPUTS} of {len(found.features)} inputs with the largest contributions are shown."
        )
    largest = extent(numbers)
    rows = [(found.features[i], [_cell(float(value), largest) for value in numbers[:, i]]) for i in kept]
    in_spreads = found.name == "learned_direction"
    effects = _effects(view) if in_spreads else []
    if effects:
        caption.append(
            f"The last row{'s show' if len(effects) > 1 else ' shows'} whether the neuron raises or lowers the output "
            "for inputs on which it is active. Each number is the change in the output if these inputs change by one "
            "along the direction in the same column."
        )
    return Patterns(" ".join(caption), jumps, [], rows, len(jumps) <= _MOST_WRITTEN, in_spreads, effects)


def _effects(view: Result) -> list[tuple[str, list[Effect | None]]]:
    """Return how the new neuron at each jump affects the outputs, for the outputs with the largest effects."""
    if view.predicted is None or "output_effect" not in view.predicted:
        return []
    values = view.predicted["output_effect"]
    values = values.isel({each: 0 for each in values.dims if each not in ("jump", "target")})
    numbers = values.transpose("target", "jump").to_numpy()[:, :MOST_PICTURES]
    names = [str(each) for each in values["target"].to_numpy()]
    sizes = np.abs(np.nan_to_num(numbers)).max(axis=1, initial=0.0)
    kept = np.sort(np.argsort(-sizes, kind="stable")[:_MOST_OUTPUTS])
    return [(names[i], [_effect(float(value)) for value in numbers[i]]) for i in kept if sizes[i] > 0]


def _effect(value: float) -> Effect | None:
    return Effect(value > 0, number(abs(value), 3)) if math.isfinite(value) else None


def _cell(value: float, largest: float) -> Cell:
    # Round to two digits of the largest value, as the colours do; zero has no sign.
    seen = round(value, 1 - math.floor(math.log10(largest))) + 0.0
    return Cell(round(100 * abs(value) / largest), value > 0, number(seen, 2))


def _picture(shares: Float[np.ndarray, "height width"]) -> str:
    colours = np.where(shares[..., None] > 0, _RED, _BLUE)
    drawn = io.BytesIO()
    imsave(drawn, np.concatenate([colours, np.abs(shares)[..., None]], axis=-1), format="png", metadata={})
    return "data:image/png;base64," + base64.b64encode(drawn.getvalue()).decode()
