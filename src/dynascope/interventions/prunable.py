"""The interface through which pruning reads a network of any framework, and the choice of prunable weights."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from dynascope.validation import require

__all__ = ["Flow", "Prunable", "require_classes", "require_pairs", "unprotected"]


class Flow(NamedTuple):
    """Synaptic flow of a network and its gradient.

    Attributes:
        total: R, the sum of the outputs for an input of ones if all parameters are replaced by their absolute values.
        gradient: ∂R/∂|θ| of each layer.
    """

    total: float
    gradient: list[np.ndarray]


@runtime_checkable
class Prunable(Protocol):
    """The interface of a network for pruning: the weights of its layers by name, and functions of these weights.

    Attributes:
        names: Name of each prunable layer.
        weights: Weights of each prunable layer, in float64.
        unit_axes: The axis of the output units in the weights of each layer.
    """

    names: list[str]
    weights: list[np.ndarray]
    unit_axes: list[int]

    def flow(self, weights: Sequence[np.ndarray]) -> Flow:
        """Synaptic flow in evaluation mode, with running means of zero, for nonnegative weights of the layers."""
        ...

    def source(self, weights: Sequence[np.ndarray]) -> float:
        """Flow from the inputs and biases, ⟨∂R/∂x, x⟩ + R(x = 0), which equals R if all activations are homogeneous."""
        ...

    def gradient(self, weights: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Gradient g of the mean loss on the data."""
        ...

    def curvature_product(self, weights: Sequence[np.ndarray], temperature: float) -> list[np.ndarray]:
        """Product H g of the Hessian and the gradient of the mean loss of outputs divided by a temperature."""
        ...

    def inhomogeneous(self) -> tuple[str, ...]:
        """Names of operations φ with φ(z) ≠ φ'(z) z."""
        ...

    def result(self, masks: Sequence[np.ndarray]) -> tuple[Any, Any]:
        """The masks in the format of the framework, and the pruned network, or None."""
        ...


def unprotected(names: Sequence[str], protect: Sequence[str]) -> list[str]:
    """Select the layers that no name in `protect` covers.

    A name covers a layer if its parts (separated by dots) occur consecutively in the name of the layer.

    Raises:
        InputError: If a name covers no layer, or if no layer remains.

    Example:
        >>> unprotected(["blocks.0.first.kernel", "blocks.2.shortcut.kernel", "classifier"], ["shortcut"])
        ['blocks.0.first.kernel', 'classifier']
    """
    require(
        len(names) > 0,
        "the network has no weights with two or more axes",
        argument="network",
        value=0,
        remedy="give a network with dense or convolutional layers",
    )
    covered: set[str] = set()
    for each in protect:
        found = {name for name in names if f".{'.'.join(_parts(each))}." in f".{'.'.join(_parts(name))}."}
        require(
            bool(found),
            f"protect contains {each!r}, which matches no layer of the network",
            argument="protect",
            value=each,
            remedy=f"choose full names, or parts of names between dots, from {', '.join(names)}",
        )
        covered |= found
    left = [name for name in names if name not in covered]
    require(
        len(left) > 0,
        "protect matches every layer",
        argument="protect",
        value=list(protect),
        remedy="leave at least one layer unprotected",
    )
    return left


def require_pairs(inputs: Any, targets: Any) -> None:
    """Raise `InputError` unless there are as many targets as inputs, and at least one."""
    require(
        len(inputs) == len(targets) > 0,
        f"the inputs and targets in data have lengths {len(inputs)} and {len(targets)}",
        argument="data",
        value=(len(inputs), len(targets)),
        remedy="give one target for each sample",
    )


def require_classes(labels: Any, outputs: int) -> None:
    """Raise `InputError` if a label is negative, or is not the index of an output."""
    least, most = int(labels.min()), int(labels.max())
    require(
        least >= 0 and most < outputs,
        f"data has labels from {least} to {most}, but the output dimension of the network is {outputs}",
        argument="data",
        value=(least, most),
        remedy=f"give labels from 0 to {outputs - 1}",
    )


def _parts(name: str) -> list[str]:
    return [part for part in re.split(r"[.\[\]'\"]+", name) if part]
