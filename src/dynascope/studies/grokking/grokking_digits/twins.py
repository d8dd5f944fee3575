"""Scale factors of training by Adam with weight decay, and of twins, which train equivalently with other factors.

`theory.regimes.matched_settings` gives the settings with which a twin repeats a run.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dynascope.theory.regimes import OptimizerSettings, matched_settings

__all__ = ["ScaleFactors", "power_of_two", "twins"]


class ScaleFactors(NamedTuple):
    """Factors changed by the remedies, and factors with which a twin compensates for the change.

    Attributes:
        weight: Factor on the initial weights.
        target: Factor on the targets.
        input: Factor on the inputs.
        output: Factor on the outputs.
        first_layer: Factor on the initial weights of the first layer, whose settings are matched.
        last_layer: Factor on the initial weights and biases of the last layer, whose settings are matched.
        loss: Factor on the loss to which the settings of all layers are matched.
    """

    weight: float
    target: float
    input: float = 1.0
    output: float = 1.0
    first_layer: float = 1.0
    last_layer: float = 1.0
    loss: float = 1.0

    def settings(self, settings: OptimizerSettings, factor: float = 1.0) -> OptimizerSettings:
        """The matched settings of an array whose initial values are multiplied by a factor."""
        return matched_settings(settings, scale=1 / factor, loss_factor=self.loss)


def twins(
    default: ScaleFactors, *, targets: float, inputs: float, outputs: float
) -> tuple[ScaleFactors, ScaleFactors, ScaleFactors]:
    """The twins of the default with changed targets, inputs or outputs; all factors are powers of two.

    Example:
        >>> twins(ScaleFactors(1.0, 2.0), targets=4.0, inputs=0.25, outputs=0.5)[1]
        ScaleFactors(weight=1.0, target=2.0, input=1.0, output=1.0, first_layer=0.25, last_layer=1.0, loss=1.0)
    """
    target, first, last = (power_of_two(each) for each in (default.target / targets, inputs, outputs))
    return (
        default._replace(target=targets * target, output=target, loss=target**2),
        default._replace(input=inputs / first, first_layer=first),
        default._replace(output=outputs / last, last_layer=last),
    )


def power_of_two(factor: float) -> float:
    """The power of two nearest to a factor, excluding 1; multiplication by it is exact.

    Example:
        >>> power_of_two(0.1), power_of_two(0.99)
        (0.125, 0.5)
    """
    return 2.0 ** (round(math.log2(factor)) or -1)
