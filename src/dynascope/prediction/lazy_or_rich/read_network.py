"""Reads a network of either framework and its data."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from dynascope.compilation.frameworks import also_in_pytorch
from dynascope.networks import MLP, DeepLinear, DiagonalLinear, TwoLayer
from dynascope.prediction.lazy_or_rich.jax_network import JaxNetwork
from dynascope.prediction.lazy_or_rich.trained_kernel import TrainableNetwork
from dynascope.prediction.network_parts import is_user_module, readable
from dynascope.tasks.as_task import as_task
from dynascope.training.losses import Loss, LossName

__all__ = ["ReadNetwork", "kernel_samples", "read_network", "samples_of"]

_INPUTS = 256  # most inputs of the kernel


class ReadNetwork(NamedTuple):
    """A network and its data.

    Attributes:
        trainable: The network as functions of its weights.
        module: The network with its initial weights, for the theories.
        inputs: All inputs.
        targets: Targets, or labels.
        degree: Degree of homogeneity of the outputs in all weights; None if unknown.
        notes: Differences between the measured network and the user's.
    """

    trainable: TrainableNetwork
    module: Any
    inputs: np.ndarray
    targets: np.ndarray
    degree: int | None
    notes: tuple[str, ...] = ()


@also_in_pytorch("dynascope.torch.trainable")
def read_network(network: Any, task: Any, *, scale: float, loss: LossName) -> ReadNetwork | None:
    """Read a network and its data; None if the task has no samples.

    Args:
        network: A network with its weights; an equinox module of the user maps one sample.
        task: The data.
        scale: Factor on the initial weights.
        loss: "squared" or "cross_entropy".
    """
    task = as_task(task)
    inputs, targets = samples_of(task)
    if inputs is None:
        return None
    module = readable(network) if is_user_module(network) else network
    module = jax.tree.map(
        lambda leaf: scale * np.asarray(leaf, np.float64) if eqx.is_inexact_array(leaf) else leaf, module
    )
    trainable = JaxNetwork(module, inputs, Loss(loss), kernel_samples(len(inputs)))
    return ReadNetwork(trainable, module, inputs, targets, _degree(module))


def samples_of(task: Any) -> tuple[Any, Any]:
    """Return the inputs and targets of a task as arrays; None if it has no samples."""
    targets = getattr(task, "targets", getattr(task, "labels", None))
    inputs = getattr(task, "inputs", None)
    return (None, None) if inputs is None or targets is None else (np.asarray(inputs), np.asarray(targets))


def kernel_samples(samples: int) -> np.ndarray:
    """Return evenly spaced indices of the samples on which the kernel is computed."""
    return np.unique(np.linspace(0, samples - 1, min(_INPUTS, samples)).astype(int))


def _degree(network: Any) -> int | None:
    if isinstance(network, TwoLayer | DeepLinear | DiagonalLinear):
        return network.degree
    if isinstance(network, MLP) and network.activation in ("relu", "linear"):
        return None if network.biases else len(network.weights)
    return None
