"""Movement of the weights away from their initial values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from dynascope.probes.alignment.vectors import clipped, unit_vector, vector_norm
from dynascope.results.named_tuples import short_repr
from dynascope.validation import array_namespace, holds, require, require_finite_values

__all__ = ["WeightMovement", "weight_movement"]


class WeightMovement(NamedTuple):
    """The distance of weights from their initial values, with a leading `time` axis if the weights have one.

    Attributes:
        relative_change: ‖W − W₀‖/‖W₀‖ over `layer`.
        start_cosine: cos∠(W, W₀) over `layer`; zero if the weights vanish.
        parameter_distance: √(Σ‖W − W₀‖²) over all layers.
        relative_parameter_distance: `parameter_distance` divided by √(Σ‖W₀‖²).
        parameter_cosine: The cosine of all weights as one vector; zero if the weights vanish.
    """

    relative_change: Annotated[Any, "time layer"]
    start_cosine: Annotated[Any, "time layer"]
    parameter_distance: Annotated[Any, "time"]
    relative_parameter_distance: Annotated[Any, "time"]
    parameter_cosine: Annotated[Any, "time"]

    __repr__ = short_repr


def weight_movement(weights: Sequence[Any], initial: Sequence[Any]) -> WeightMovement:
    """Compute the movement of the weights, ‖W − W₀‖/‖W₀‖ and cos∠(W, W₀), per layer and for all weights.

    Cosines are computed as 1 − ½‖W/‖W‖ − W₀/‖W₀‖‖², which is accurate for small changes.

    Cost: about 20 operations per weight and time, and memory for three copies of the weights.

    Args:
        weights: One array per layer or kind of parameter, of any shape (matrices, biases, filters); all with a leading
            time axis or all without. All arrays must come from one library: NumPy, JAX or PyTorch.
        initial: The initial weights, without a time axis.

    Raises:
        InputError: If there is no array, shapes do not match, an initial array is zero, or values are not finite (the
            last two are not checked under JAX tracing).

    Example:
        >>> import numpy as np
        >>> moved = weight_movement([np.array([[3.0, 4.0]])], [np.array([[3.0, 0.0]])])
        >>> moved.relative_change.round(3), moved.start_cosine, float(moved.parameter_distance)
        (array([1.333]), array([0.6]), 4.0)
    """
    # Parameters of PyTorch modules require gradients, but a measurement needs none.
    weights, initial = (
        [getattr(each, "detach", lambda each=each: each)() for each in part] for part in (weights, initial)
    )
    require(
        0 < len(weights) == len(initial),
        f"weights has length {len(weights)}, and initial has length {len(initial)}",
        argument="initial",
        value=len(initial),
        remedy="give the initial weights of each layer, in the same order",
    )
    xp = array_namespace(*weights, *initial)
    times = tuple(weights[0].shape)[: max(len(weights[0].shape) - len(initial[0].shape), 0)]
    for layer, (each, start) in enumerate(zip(weights, initial, strict=True)):
        require_finite_values("weights", each, floating=True)
        require_finite_values("initial", start, floating=True)
        require(
            len(times) < 2 and tuple(each.shape) == (*times, *start.shape),
            f"weights[{layer}] has shape {tuple(each.shape)}, but initial[{layer}] has shape {tuple(start.shape)}",
            argument="weights",
            value=tuple(each.shape),
            remedy="give arrays of the same shapes, with a leading time axis for all weights or for none",
        )
        require(
            math.prod(start.shape) > 0 and holds(xp.any(start != 0)),
            f"initial[{layer}] is zero",
            argument="initial",
            value=layer,
            remedy="omit this layer, because its relative change is undefined",
        )
    now = [xp.reshape(each, (*times, -1)) for each in weights]
    start = [xp.reshape(each, (-1,)) for each in initial]
    layers = [_moved(*each) for each in zip(now, start, strict=True)]
    changes, cosines = (xp.stack([each[i] for each in layers], axis=-1) for i in (1, 2))
    distance, change, cosine = _moved(xp.concat(now, axis=-1), xp.concat(start, axis=-1))
    return WeightMovement(changes, cosines, distance, change, cosine)


def _moved(now: Any, start: Any) -> tuple[Any, Any, Any]:
    """Return the distance, relative distance and cosine of vectors relative to an initial vector."""
    xp = array_namespace(now)
    distance, size = vector_norm(now - start), vector_norm(now)
    cosine = clipped(1 - xp.sum((unit_vector(now) - unit_vector(start)) ** 2, axis=-1) / 2)
    return distance, distance / vector_norm(start), xp.where(size > 0, cosine, xp.zeros_like(cosine))
