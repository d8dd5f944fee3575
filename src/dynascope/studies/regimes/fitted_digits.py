"""ReLU networks trained by gradient flow until they fit some of the handwritten digits, and their test accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float, Int

from dynascope.flows.gradient_flow import GradientFlow, gradient_flow
from dynascope.flows.solvers.solver import Solver
from dynascope.networks import MLP
from dynascope.tasks import Task
from dynascope.tasks.data.digits import digits

__all__ = [
    "MEASURED",
    "FittedRun",
    "SplitDigits",
    "centred_accuracy",
    "fitted",
    "layer_difference",
    "norm_of",
    "split_digits",
]

# Relative error of a step. With 1e-3, networks with four times the usual initial weights lost 40% of the conserved
# ‖W₂‖² − ‖W₁‖², and their test accuracy was twice as high. Between 1e-5 and 1e-6, accuracies change by at most 0.002.
_TOLERANCE = 1e-5
_DURATION = 1e6  # far beyond the time at which any network fits the digits


class SplitDigits(NamedTuple):
    """Training digits, and all other digits as test data.

    Attributes:
        task: Training digits with centred one-hot targets; the pixels have mean square one.
        labels: Labels of the training digits, shape (n,).
        test_inputs: Shape (m, 64).
        test_labels: Shape (m,).
    """

    task: Task
    labels: Int[np.ndarray, " n"]
    test_inputs: Float[np.ndarray, "m d"]
    test_labels: Int[np.ndarray, " m"]


class FittedRun(NamedTuple):
    """Measurements of one network after training.

    Attributes:
        loss: Training loss, divided by the loss of the zero function.
        accuracy: Fraction of correctly classified training digits.
        test_accuracy: Fraction of correctly classified test digits.
        norm: Euclidean norm of all weights.
        layer_difference: ‖W₂‖² − ‖W₁‖², which gradient flow conserves without biases.
        feature_change: Relative change ‖H − H₀‖/‖H₀‖ of the inputs of the last layer on the training digits.
    """

    loss: float
    accuracy: float
    test_accuracy: float
    norm: float
    layer_difference: float
    feature_change: float


MEASURED = FittedRun._fields


def split_digits(samples: int, draw: np.random.Generator) -> SplitDigits:
    """Draw training digits; all others are test digits.

    Example:
        >>> split = split_digits(100, np.random.default_rng(0))
        >>> split.task.samples, len(split.test_labels), round(float(np.mean(split.task.inputs**2)), 1)
        (100, 1697, 1.0)
    """
    whole = digits()
    inputs, labels = whole.inputs / np.sqrt(np.mean(whole.inputs**2)), np.argmax(whole.targets, axis=1)
    order = draw.permutation(whole.samples)
    train, test = order[:samples], order[samples:]
    task = Task(inputs[train], whole.targets[train], name=whole.name)
    return SplitDigits(task, labels[train], inputs[test], labels[test])


def fitted(network: MLP, data: SplitDigits, loss: float, rates: Mapping[str, float] | float = 1.0) -> FittedRun:
    """Train a network by gradient flow until its loss is a given fraction of the loss of the zero function.

    Args:
        network: The initial network.
        data: The digits.
        loss: Fraction at which training stops.
        rates: Learning rates of the layers.
    """
    power = data.task.target_power / 2
    reached, trained = _trained(network, data.task, loss * power, rates)
    before, after = (np.asarray(each.features(data.task.inputs)) for each in (network, trained))
    return FittedRun(
        reached / power,
        _accuracy(trained(data.task.inputs), data.labels),
        _accuracy(trained(data.test_inputs), data.test_labels),
        norm_of(trained),
        layer_difference(trained),
        float(np.linalg.norm(after - before) / np.linalg.norm(before)),
    )


def centred_accuracy(network: MLP, data: SplitDigits, loss: float, rates: Mapping[str, float] | float = 1.0) -> float:
    """Test accuracy of f − f₀, the output without that of the initial network, after training f − f₀ to the same loss.

    Training f − f₀ on the targets y is the same as training f on the targets y + f₀.

    Args:
        network: The initial network f₀.
        data: The digits.
        loss: Fraction of the loss of the zero function at which training stops.
        rates: Learning rates of the layers.
    """
    task = Task(data.task.inputs, data.task.targets + np.asarray(network(data.task.inputs)), name=data.task.name)
    trained = _trained(network, task, loss * data.task.target_power / 2, rates)[1]
    change = np.asarray(trained(data.test_inputs)) - np.asarray(network(data.test_inputs))
    return _accuracy(change, data.test_labels)


def norm_of(network: MLP) -> float:
    """Euclidean norm of all weights.

    Example:
        >>> round(norm_of(MLP((3, 100, 2), bias=False)) / norm_of(MLP((3, 100, 2), bias=False, scale=2.0)), 6)
        0.5
    """
    return float(np.sqrt(sum(_squares(network))))


def layer_difference(network: MLP) -> float:
    """‖W₂‖² − ‖W₁‖² of a network with one hidden layer.

    Example:
        >>> first, second = (np.sum(weight**2) for weight in MLP((3, 5, 2), bias=False).weights)
        >>> bool(np.isclose(layer_difference(MLP((3, 5, 2), bias=False)), second - first))
        True
    """
    first, second = _squares(network)
    return second - first


def _trained(network: MLP, task: Task, loss: float, rates: Mapping[str, float] | float) -> tuple[float, MLP]:
    """Training loss and network at the end of the gradient flow."""
    method = GradientFlow(
        duration=_DURATION,
        learning_rate=rates,
        solver=Solver("explicit", relative_tolerance=_TOLERANCE),
        save=2,
        loss_target=loss,
    )
    run, trained = gradient_flow(task, network, method, return_networks=True)
    return float(run["loss"][-1]), trained


def _squares(network: MLP) -> list[float]:
    return [float(np.sum(np.asarray(weight) ** 2)) for weight in network.weights]


def _accuracy(outputs: ArrayLike, labels: np.ndarray) -> float:
    return float(np.mean(np.argmax(np.asarray(outputs), axis=1) == labels))
