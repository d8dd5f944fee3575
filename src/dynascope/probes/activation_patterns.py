"""Which neurons are active on which samples, and on how many that has changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

from dynascope.results.named_tuples import short_repr
from dynascope.validation import array_namespace, checked, require, require_finite_values
from dynascope.validation.bounded_scalars import PositiveInt

__all__ = [
    "Activity",
    "HammingDistance",
    "NeuronCounts",
    "activity",
    "count_active",
    "count_flips",
    "hamming_distance",
]

_EVENTS = {"active": "count_active", "flip": "count_flips"}


@dataclasses.dataclass(frozen=True)
class NeuronCounts:
    """On how many of the samples seen so far something was the case for each neuron.

    Those of several batches add up: `functools.reduce(operator.add, batches)`.

    Attributes:
        layers: For each layer the number of samples, shape (h,), or (times, h).
        samples: Number of samples.
        event: What was counted: "active", z > 0, or "flip", that this is so before and not after, or the reverse.
    """

    layers: tuple[Any, ...]
    samples: PositiveInt
    event: Literal["active", "flip"]

    __repr__ = short_repr

    def __add__(self, other: NeuronCounts) -> NeuronCounts:
        """The counts over both batches, of the same neurons."""
        shapes = [[tuple(each.shape) for each in counts.layers] for counts in (self, other)]
        require(
            self.event == other.event and shapes[0] == shapes[1],
            f"counts of {self.event} over neurons {shapes[0]} and of {other.event} over {shapes[1]} do not add up",
            argument="other",
            value=other.event,
            remedy="add up batches of one network and one measure",
        )
        layers = tuple(one + more for one, more in zip(self.layers, other.layers, strict=True))
        return NeuronCounts(layers, self.samples + other.samples, self.event)


class HammingDistance(NamedTuple):
    """Fractions of flipped activations, with `time` in front where the counts have it.

    Attributes:
        hamming_distance: Over all pairs of a sample and a neuron.
        layer_hamming_distance: The same of each `layer`.
        neuron_hamming_distance: The same of each `neuron`, layer after layer.
    """

    hamming_distance: Annotated[Any, "time"]
    layer_hamming_distance: Annotated[Any, "time layer"]
    neuron_hamming_distance: Annotated[Any, "time neuron"]

    __repr__ = short_repr


class Activity(NamedTuple):
    """How often neurons are active, with `time` in front where the counts have it.

    Attributes:
        active_fraction: The fraction of samples on which each `neuron` is active, layer after layer.
        dead_fraction: The fraction of neurons of each `layer` that are active on no sample.
        always_on_fraction: The fraction of neurons of each `layer` that are active on all samples.
    """

    active_fraction: Annotated[Any, "time neuron"]
    dead_fraction: Annotated[Any, "time layer"]
    always_on_fraction: Annotated[Any, "time layer"]

    __repr__ = short_repr


@checked
def count_flips(before: Any, after: Any) -> NeuronCounts:
    """Count the samples of a batch on which the activation pattern A = 1[z > 0] of each neuron differs.

    A neuron at zero is inactive, as for the gradient of a ReLU.

    Cost: 3 operations for each pre-activation, and memory for as many truth values.

    Args:
        before: Pre-activations z, shape (n, h), or a sequence of such arrays, one for each layer. All arrays are of one
            library: NumPy, JAX or PyTorch.
        after: The same neurons on the same samples at another time, or at several, shape (times, n, h).

    Raises:
        InputError: No layer, shapes that do not fit, or values that are not finite (not seen while JAX traces).

    Example:
        >>> import numpy as np
        >>> count_flips(np.array([[1.0, -1.0], [2.0, 3.0]]), np.array([[1.0, 1.0], [0.5, -3.0]])).layers
        (array([0, 2]),)
    """
    start, now = _layers("before", before), _layers("after", after)
    fits = len(start) == len(now) and all(
        len(one.shape) == 2 and tuple(one.shape) == tuple(other.shape)[-2:]
        for one, other in zip(start, now, strict=True)
    )
    shapes = [tuple(each.shape) for each in now]
    require(
        fits,
        f"pre-activations of shapes {[tuple(each.shape) for each in start]} before and {shapes} after do not fit",
        argument="after",
        value=shapes,
        remedy="give the same layers on the same samples, with times in front of those after or not",
    )
    xp = array_namespace(*start, *now)
    flips = tuple(xp.sum((one > 0) != (other > 0), axis=-2) for one, other in zip(start, now, strict=True))
    return NeuronCounts(flips, int(start[0].shape[0]), "flip")


@checked
def hamming_distance(flips: NeuronCounts) -> HammingDistance:
    """The fraction of (sample, neuron) pairs whose activation has flipped.

    Near one half for patterns that have nothing to do with each other, when neurons are active on half of the samples.
    Some publications sum over the neurons of a layer instead: multiply by their number.

    Cost: a few operations for each neuron, and memory for as many numbers.

    Args:
        flips: From `count_flips`, over all batches.

    Raises:
        InputError: These are counts of something else.

    References:
        Kunin et al., Get rich quick, arXiv:2406.06158.

    Example:
        >>> import numpy as np
        >>> flips = count_flips(np.array([[1.0, -1.0], [2.0, 3.0]]), np.array([[1.0, 1.0], [0.5, -3.0]]))
        >>> hamming_distance(flips)
        HammingDistance(hamming_distance=0.5, layer_hamming_distance=[0.5], neuron_hamming_distance=[0, 1])
    """
    xp, fractions = _fractions(flips, "flip")
    neurons = xp.concat(fractions, axis=-1)
    layers = xp.stack([xp.mean(each, axis=-1) for each in fractions], axis=-1)
    return HammingDistance(xp.mean(neurons, axis=-1), layers, neurons)


@checked
def count_active(preactivations: Any) -> NeuronCounts:
    """Count the samples of a batch on which each neuron is active, z > 0.

    Cost: 2 operations for each pre-activation, and memory for as many truth values.

    Args:
        preactivations: z, shape (n, h) or (times, n, h), or a sequence of such arrays, one for each layer. All arrays
            are of one library: NumPy, JAX or PyTorch.

    Raises:
        InputError: As `count_flips`.

    Example:
        >>> import numpy as np
        >>> count_active(np.array([[1.0, -1.0, 0.0], [2.0, 3.0, -1.0]])).layers
        (array([2, 1, 0]),)
    """
    layers = _layers("preactivations", preactivations)
    xp = array_namespace(*layers)
    return NeuronCounts(tuple(xp.sum(each > 0, axis=-2) for each in layers), int(layers[0].shape[-2]), "active")


@checked
def activity(active: NeuronCounts) -> Activity:
    """How often neurons are active, and which part of a layer never or always is.

    A ReLU neuron that is dead on the training samples gets no gradient; one that is always on is linear on them. Both
    are statements about the samples seen, so the fractions fall with their number.

    Cost: a few operations for each neuron, and memory for as many numbers.

    Args:
        active: From `count_active`, over all batches.

    Raises:
        InputError: These are counts of something else.

    Example:
        >>> import numpy as np
        >>> activity(count_active(np.array([[1.0, -1.0, 0.0, 1.0], [2.0, 3.0, -1.0, 1.0]])))
        Activity(active_fraction=[1, 0.5, 0, 1], dead_fraction=[0.25], always_on_fraction=[0.5])
    """
    xp, fractions = _fractions(active, "active")

    def share(of: int) -> Any:
        layers = zip(active.layers, fractions, strict=True)
        return xp.stack([xp.mean(xp.astype(n == of, like.dtype), axis=-1) for n, like in layers], axis=-1)

    return Activity(xp.concat(fractions, axis=-1), share(0), share(active.samples))


def _layers(name: str, preactivations: Any) -> Sequence[Any]:
    """The layers, checked: one array is one layer."""
    layers = list(preactivations) if isinstance(preactivations, list | tuple) else [preactivations]
    require(len(layers) > 0, f"{name} has no layer", argument=name, value=0, remedy="give one array for each layer")
    array_namespace(*layers)
    shapes = [tuple(each.shape) for each in layers]
    require(
        all(len(shape) in (2, 3) and min(shape) > 0 and shape[:-1] == shapes[0][:-1] for shape in shapes),
        f"{name} has layers of shapes {shapes}",
        argument=name,
        value=shapes,
        remedy="give shapes (n, h), or (times, n, h), with the same samples in every layer",
    )
    for each in layers:
        require_finite_values(name, each, floating=True)
    return layers


def _fractions(counts: NeuronCounts, event: str) -> tuple[Any, list[Any]]:
    """The array functions, and the fraction of samples for each neuron of each layer."""
    require(
        counts.event == event,
        f"these are counts of {counts.event}",
        argument=event,
        value=counts.event,
        remedy=f"take those of {_EVENTS[event]}",
    )
    xp = array_namespace(*counts.layers)
    real = xp.__array_namespace_info__().dtypes().get("float64", xp.float32)
    fractions = [xp.astype(each, real) / counts.samples for each in counts.layers]
    return xp, fractions
