"""Activation patterns of neurons: how often each neuron is active, and how often its activation flips."""

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
    """For each neuron, the number of samples on which an event occurred.

    Counts of several batches can be added: `functools.reduce(operator.add, batches)`.

    Attributes:
        layers: For each layer, the number of samples for each neuron, shape (h,) or (times, h).
        samples: Number of samples.
        event: The counted event: "active" (z > 0) or "flip" (z > 0 either before or after, but not both).
    """

    layers: tuple[Any, ...]
    samples: PositiveInt
    event: Literal["active", "flip"]

    __repr__ = short_repr

    def __add__(self, other: NeuronCounts) -> NeuronCounts:
        """Add the counts of another batch for the same neurons."""
        shapes = [[tuple(each.shape) for each in counts.layers] for counts in (self, other)]
        require(
            self.event == other.event and shapes[0] == shapes[1],
            f"counts of {self.event!r} (shapes {shapes[0]}) and {other.event!r} (shapes {shapes[1]}) cannot be added",
            argument="other",
            value=other.event,
            remedy="add counts of the same event in the same network",
        )
        layers = tuple(one + more for one, more in zip(self.layers, other.layers, strict=True))
        return NeuronCounts(layers, self.samples + other.samples, self.event)


class HammingDistance(NamedTuple):
    """Fractions of flipped activations, with a leading `time` axis if the counts have one.

    Attributes:
        hamming_distance: The fraction over all pairs of a sample and a neuron.
        layer_hamming_distance: The fraction for each `layer`.
        neuron_hamming_distance: The fraction for each `neuron`; the layers are concatenated.
    """

    hamming_distance: Annotated[Any, "time"]
    layer_hamming_distance: Annotated[Any, "time layer"]
    neuron_hamming_distance: Annotated[Any, "time neuron"]

    __repr__ = short_repr


class Activity(NamedTuple):
    """Fractions of active neurons and samples, with a leading `time` axis if the counts have one.

    Attributes:
        active_fraction: The fraction of samples on which each `neuron` is active; the layers are concatenated.
        dead_fraction: The fraction of neurons of each `layer` that are active on no sample.
        always_on_fraction: The fraction of neurons of each `layer` that are active on all samples.
    """

    active_fraction: Annotated[Any, "time neuron"]
    dead_fraction: Annotated[Any, "time layer"]
    always_on_fraction: Annotated[Any, "time layer"]

    __repr__ = short_repr


@checked
def count_flips(before: Any, after: Any) -> NeuronCounts:
    """Count, for each neuron, the samples of a batch on which its activation A = 1[z > 0] has flipped.

    A neuron with z = 0 is inactive, as in the gradient of a ReLU.

    Cost: 3 operations and one stored boolean per pre-activation.

    Args:
        before: Pre-activations z, shape (n, h), or a sequence of such arrays, one per layer. All arrays must come from
            one library: NumPy, JAX or PyTorch.
        after: Pre-activations of the same neurons on the same samples at another time, or at several times, shape
            (times, n, h).

    Raises:
        InputError: If there is no layer, shapes do not match, or values are not finite (not checked under JAX tracing).

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
        f"pre-activations have shapes {[tuple(each.shape) for each in start]} before and {shapes} after",
        argument="after",
        value=shapes,
        remedy="give the same layers on the same samples; only `after` may have a leading time axis",
    )
    xp = array_namespace(*start, *now)
    flips = tuple(xp.sum((one > 0) != (other > 0), axis=-2) for one, other in zip(start, now, strict=True))
    return NeuronCounts(flips, int(start[0].shape[0]), "flip")


@checked
def hamming_distance(flips: NeuronCounts) -> HammingDistance:
    """Compute the fraction of (sample, neuron) pairs whose activation has flipped.

    For unrelated activation patterns, the fraction is about one half if each neuron is active on half of the samples.
    Some publications sum over the neurons of a layer; to compare with them, multiply the fraction by the number of
    neurons.

    Cost: a few operations and a few stored numbers per neuron.

    Args:
        flips: The result of `count_flips`, summed over all batches.

    Raises:
        InputError: If `flips` counts another event.

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

    Cost: 2 operations and one stored boolean per pre-activation.

    Args:
        preactivations: z, shape (n, h) or (times, n, h), or a sequence of such arrays, one per layer. All arrays must
            come from one library: NumPy, JAX or PyTorch.

    Raises:
        InputError: If there is no layer, shapes do not match, or values are not finite (not checked under JAX tracing).

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
    """Compute how often each neuron is active, and the fractions of neurons that are never or always active.

    A ReLU neuron that is inactive on all training samples has zero gradient; a neuron that is active on all of them is
    linear on these samples. Adding samples can only decrease both fractions.

    Cost: a few operations and a few stored numbers per neuron.

    Args:
        active: The result of `count_active`, summed over all batches.

    Raises:
        InputError: If `active` counts another event.

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
    """Return the layers after checking them; a single array is one layer."""
    layers = list(preactivations) if isinstance(preactivations, list | tuple) else [preactivations]
    require(len(layers) > 0, f"{name} has no layers", argument=name, value=0, remedy="give one array for each layer")
    array_namespace(*layers)
    shapes = [tuple(each.shape) for each in layers]
    require(
        all(len(shape) in (2, 3) and min(shape) > 0 and shape[:-1] == shapes[0][:-1] for shape in shapes),
        f"{name} has layers of shapes {shapes}",
        argument=name,
        value=shapes,
        remedy="give arrays of shape (n, h) or (times, n, h), with the same samples in every layer",
    )
    for each in layers:
        require_finite_values(name, each, floating=True)
    return layers


def _fractions(counts: NeuronCounts, event: str) -> tuple[Any, list[Any]]:
    """Return the array namespace, and the fraction of samples for each neuron of each layer."""
    require(
        counts.event == event,
        f"the counts are for the event {counts.event!r}, not {event!r}",
        argument=event,
        value=counts.event,
        remedy=f"give the result of {_EVENTS[event]}",
    )
    xp = array_namespace(*counts.layers)
    real = xp.__array_namespace_info__().dtypes().get("float64", xp.float32)
    fractions = [xp.astype(each, real) / counts.samples for each in counts.layers]
    return xp, fractions
