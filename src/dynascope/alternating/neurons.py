"""Validation, loss and padding of networks that are sums of neurons."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from dynascope.flows.objective import CentredSamples, Samples
from dynascope.networks.biased_two_layer import BiasedTwoLayer
from dynascope.protocols import Average, Learnable, OneHiddenLayer, SumOfNeurons
from dynascope.tasks.task import Task
from dynascope.validation import require
from dynascope.validation.kinds import in_words

__all__ = ["average_of", "kinked", "padded", "require_neurons"]

# Numbers of active neurons for which programs are compiled. The finer grid is used if steps cost more than compilation.
_SIZES = tuple(2**power for power in range(3, 31))
_CLOSER = sorted(each for power in range(2, 30) for each in (2**power, 3 * 2 ** (power - 1)))
_EXPENSIVE = 1e8  # operations of an implicit step above which the finer grid is used


def average_of(task: Learnable, network: Any) -> Average:
    """Return the samples or the expectation that defines the loss of the neurons.

    An output bias is active from the beginning and adapts with a time constant of one. In the limit of small neurons,
    the bias is therefore always optimal, and the loss is that of centred residuals.
    """
    if not isinstance(task, Task):
        return task
    centred = isinstance(network, BiasedTwoLayer) and network.bias is not None
    return (CentredSamples if centred else Samples)(*jax.device_put((task.inputs, task.targets)))


def kinked(network: Any) -> bool:
    """Whether the velocity of the weights is discontinuous when a neuron switches on or off on a sample, as for ReLU.

    Example:
        >>> from dynascope.networks import TwoLayer
        >>> [kinked(TwoLayer(2, 3, 1, activation=name)) for name in ("linear", "relu", "quadratic")]
        [False, True, False]
    """
    if not isinstance(network, OneHiddenLayer | BiasedTwoLayer):
        return False
    return network.activation.degree == 1 and network.activation.positive != -network.activation.negative


def padded(
    rows: Float[np.ndarray, "active weights"], neurons: int, samples: int = 1
) -> Float[np.ndarray, "filled weights"]:
    """Pad the active neurons with rows of zeros to one of a few sizes, so that few programs are compiled.

    Args:
        rows: Weights Θ of the active neurons.
        neurons: Number of neurons in the network, which is the largest padded size.
        samples: Number of samples per gradient if the solver takes implicit steps. More samples reduce the padding.

    Example:
        >>> padded(np.ones((2, 3)), 20).shape, padded(np.ones((9, 3)), 20).shape, padded(np.ones((9, 3)), 10).shape
        ((8, 3), (16, 3), (10, 3))
        >>> padded(np.ones((5, 70)), 50, samples=2000).shape
        (6, 70)
    """
    few, closer = (next(size for size in sizes if size >= len(rows)) for sizes in (_SIZES, _CLOSER))
    size = closer if (few * rows.shape[1]) ** 2 * samples > _EXPENSIVE else few
    missing = max(min(size, neurons) - len(rows), 0)
    return np.pad(rows, ((0, missing), (0, 0)))


def require_neurons(network: Any, *, exchangeable: bool = False) -> None:
    """Raise `InputError` unless the network is a sum of neurons of degree two or more.

    Args:
        network: The network.
        exchangeable: Whether the neurons must also be exchangeable, that is, all compute the same function of their
            weights.

    Example:
        >>> from dynascope.networks import TwoLayer
        >>> require_neurons(TwoLayer(3, 2, 1), exchangeable=True)
    """
    name = type(network).__name__
    free = "TwoLayer, LinearAttention or NeuronSum"
    require(
        isinstance(network, SumOfNeurons)
        and network.degree >= 2
        and (not exchangeable or getattr(network, "exchangeable", True)),
        f"the network is {in_words(type(network))}"
        + (f" of degree {network.degree}" if hasattr(network, "degree") else ""),
        argument="network",
        value=name,
        remedy=f"give a sum of exchangeable neurons of degree two or more, such as {free}"
        if exchangeable
        else f"give a sum of neurons of degree two or more, such as DiagonalLinear, {free}",
    )
