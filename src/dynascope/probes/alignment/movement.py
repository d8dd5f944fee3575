"""How far weights are from where they started."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from dynascope.probes.alignment.vectors import clipped, unit_vector, vector_norm
from dynascope.results.named_tuples import short_repr
from dynascope.validation import array_namespace, holds, require, require_finite_values

__all__ = ["WeightMovement", "weight_movement"]


class WeightMovement(NamedTuple):
    """The distance of weights from the initial ones, with `time` in front where the weights have it.

    Attributes:
        relative_change: ‖W − W₀‖/‖W₀‖ over `layer`.
        start_cosine: cos∠(W, W₀) over `layer`, zero where the weights vanish.
        parameter_distance: √(Σ‖W − W₀‖²) over all layers.
        relative_parameter_distance: That over √(Σ‖W₀‖²).
        parameter_cosine: The cosine of all weights as one vector, zero where the weights vanish.
    """

    relative_change: Annotated[Any, "time layer"]
    start_cosine: Annotated[Any, "time layer"]
    parameter_distance: Annotated[Any, "time"]
    relative_parameter_distance: Annotated[Any, "time"]
    parameter_cosine: Annotated[Any, "time"]

    __repr__ = short_repr


def weight_movement(weights: Sequence[Any], initial: Sequence[Any]) -> WeightMovement:
    """How far the weights have moved: ‖W − W₀‖/‖W₀‖ and cos∠(W, W₀) of each layer, and of all weights as one vector.

    Cosines are taken as 1 − ½‖W/‖W‖ − W₀/‖W₀‖‖², which is exact where little has changed.

    Cost: about 20 operations a weight at each time, and memory for three copies of the weights.

    Args:
        weights: One array for each layer or kind of parameter, of any shape (matrices, biases, filters); all with a
            leading time axis or all without. All arrays are of one library: NumPy, JAX or PyTorch.
        initial: The same at the start, without time axis.

    Raises:
        InputError: No array, shapes that do not fit, an array that is zero at the start, or values that are not finite
            (these two are not seen while JAX traces).

    Example:
        >>> import numpy as np
        >>> moved = weight_movement([np.array([[3.0, 4.0]])], [np.array([[3.0, 0.0]])])
        >>> moved.relative_change.round(3), moved.start_cosine, float(moved.parameter_distance)
        (array([1.333]), array([0.6]), 4.0)
    """
    weights, initial = list(weights), list(initial)
    require(
        0 < len(weights) == len(initial),
        f"there are {len(weights)} arrays and {len(initial)} at the start",
        argument="initial",
        value=len(initial),
        remedy="give one for each layer",
    )
    xp = array_namespace(*weights, *initial)
    times = tuple(weights[0].shape)[: max(len(weights[0].shape) - len(initial[0].shape), 0)]
    for layer, (each, start) in enumerate(zip(weights, initial, strict=True), 1):
        require_finite_values("weights", each, floating=True)
        require_finite_values("initial", start, floating=True)
        require(
            len(times) < 2 and tuple(each.shape) == (*times, *start.shape),
            f"array {layer} has shape {tuple(each.shape)} and {tuple(start.shape)} at the start",
            argument="weights",
            value=tuple(each.shape),
            remedy="give the same shapes, with one time axis in front of all weights or of none",
        )
        require(
            math.prod(start.shape) > 0 and holds(xp.any(start != 0)),
            f"array {layer} is zero at the start",
            argument="initial",
            value=layer,
            remedy="leave it out, as a relative change means nothing for it",
        )
    now = [xp.reshape(each, (*times, -1)) for each in weights]
    start = [xp.reshape(each, (-1,)) for each in initial]
    layers = [_moved(*each) for each in zip(now, start, strict=True)]
    changes, cosines = (xp.stack([each[i] for each in layers], axis=-1) for i in (1, 2))
    distance, change, cosine = _moved(xp.concat(now, axis=-1), xp.concat(start, axis=-1))
    return WeightMovement(changes, cosines, distance, change, cosine)


def _moved(now: Any, start: Any) -> tuple[Any, Any, Any]:
    """Distance and relative distance of vectors from one, and the cosine."""
    xp = array_namespace(now)
    distance, size = vector_norm(now - start), vector_norm(now)
    cosine = clipped(1 - xp.sum((unit_vector(now) - unit_vector(start)) ** 2, axis=-1) / 2)
    return distance, distance / vector_norm(start), xp.where(size > 0, cosine, xp.zeros_like(cosine))
