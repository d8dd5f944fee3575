"""Dials of training by Adam with weight decay, and which other dials give the same run: twins.

The steps of Adam do not depend on the size of the loss, so that the factors on outputs and targets are one dial as long
as the decay and the ε of Adam go with the square of the targets. A layer whose rate goes with its size, and whose decay
with the inverse square, may be of any size, so that a factor on inputs or outputs is one on the first or last layer.
"""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["Dials", "power_of_two", "twins"]


class Dials(NamedTuple):
    """Factors that are usually turned; then those by which a twin makes up for a change of them.

    Attributes:
        weight: Factor on the initial weights.
        target: Factor on the targets.
        input: Factor on the inputs.
        output: Factor on the outputs.
        first_layer: c for the weights of the first layer: they start c times as large and take steps c times as long,
            and their decay is 1/c² of what it is elsewhere.
        last_layer: The same for the weights and biases of the last layer.
        decay: Factor on the weight decay, and on the ε of Adam.
    """

    weight: float
    target: float
    input: float = 1.0
    output: float = 1.0
    first_layer: float = 1.0
    last_layer: float = 1.0
    decay: float = 1.0


def twins(default: Dials, *, targets: float, inputs: float, outputs: float) -> tuple[Dials, Dials, Dials]:
    """The twins of the default with other targets, inputs or outputs, by powers of two, which round alike.

    Example:
        >>> twins(Dials(1.0, 2.0), targets=4.0, inputs=0.25, outputs=0.5)[1]
        Dials(weight=1.0, target=2.0, input=1.0, output=1.0, first_layer=0.25, last_layer=1.0, decay=1.0)
    """
    target, first, last = (power_of_two(each) for each in (default.target / targets, inputs, outputs))
    return (
        default._replace(target=targets * target, output=target, decay=target**2),
        default._replace(input=inputs / first, first_layer=first),
        default._replace(output=outputs / last, last_layer=last),
    )


def power_of_two(factor: float) -> float:
    """The nearest one other than 1, by which numbers are multiplied without rounding.

    Example:
        >>> power_of_two(0.1), power_of_two(0.99)
        (0.125, 0.5)
    """
    return 2.0 ** (round(math.log2(factor)) or -1)
