"""Losses, accuracies, features and gradient balance of classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from dynascope.compilation import filter_jit
from dynascope.probes.last_layer import layer_metrics, require_varying_features

__all__ = ["Measured", "classifier_metrics", "measure"]

_ARRAYS = ("inputs", "targets")
_SCALARS = ("loss", "test_loss", "accuracy", "test_accuracy", "gradient_balance")
_METRICS = ("kappa_cka", "effective_dimension", "effective_dimension_quality", "effective_dimension_utilization")


class Measured(NamedTuple):
    """Measurements of the networks of all seeds, in float64.

    Attributes:
        loss: Training loss, shape (seeds,).
        test_loss: Loss on the test samples, shape (seeds,).
        accuracy: Accuracy on the training samples, shape (seeds,).
        test_accuracy: Accuracy on the test samples, shape (seeds,).
        features: Inputs of the last layer on the training samples, shape (seeds, n, p).
        outputs: Outputs on the training samples, shape (seeds, n, c).
        gradient_balance: ⟨W₁, ∂L/∂W₁⟩/⟨W₂, ∂L/∂W₂⟩ of the layers around the last hidden neurons, shape (seeds,).
    """

    loss: np.ndarray
    test_loss: np.ndarray
    accuracy: np.ndarray
    test_accuracy: np.ndarray
    features: np.ndarray
    outputs: np.ndarray
    gradient_balance: np.ndarray


def measure(networks: Any, tasks: Sequence[Any], tests: Sequence[Any], loss: str) -> Measured:
    """Measure networks stacked along the first dimension, each on its training and test samples.

    Args:
        networks: Stacked networks with layers `first` and `second`, or transformers whose last block has them.
        tasks: Training samples of each network, with `inputs` and `targets` of equal sizes.
        tests: Test samples of each network.
        loss: "cross_entropy" or "squared" (half the sum of squares over outputs), averaged over samples.
    """
    with jax.enable_x64(True):
        stacked = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), networks)
        data = [np.stack([getattr(each, name) for each in side]) for side in (tasks, tests) for name in _ARRAYS]
        return Measured(*(np.asarray(each) for each in _measured(stacked, *data, loss)))


def classifier_metrics(measured: Measured, tasks: Sequence[Any], loss: str, *, time: float) -> dict[str, Any]:
    """Losses, accuracies and feature metrics over seeds; with cross-entropy, feature metrics use the softmax outputs.

    Raises:
        DivergenceError: The features of a network are equal on all samples; the error states the given time.
    """
    samples = [(*each[:2], each[2].targets) for each in zip(measured.features, measured.outputs, tasks, strict=True)]
    with require_varying_features(time):
        logits = chosen = [layer_metrics(*each) for each in samples]
        if loss == "cross_entropy":
            chosen = [layer_metrics(*each, output_function="softmax") for each in samples]
    return {
        **{name: getattr(measured, name) for name in _SCALARS},
        **{name: np.array([float(each[name]) for each in chosen]) for name in _METRICS},
        "total_utilization": np.array([each["utilization"].sum() for each in logits]),
    }


def _mean_loss(outputs: Any, targets: Any, loss: str) -> Any:
    if loss == "cross_entropy":
        return optax.softmax_cross_entropy(outputs, targets).mean()
    return jnp.sum((outputs - targets) ** 2, axis=1).mean() / 2


@filter_jit
def _measured(networks: Any, *data: Any) -> Any:
    loss = data[-1]

    def member(network: Any, inputs: Any, targets: Any, test_inputs: Any, test_targets: Any) -> tuple[Any, ...]:
        def value(network: Any) -> Any:
            return _mean_loss(network(inputs), targets, loss)

        def accuracy(outputs: Any, targets: Any) -> Any:
            return jnp.mean(outputs.argmax(axis=1) == targets.argmax(axis=1))

        now, slope = eqx.filter_value_and_grad(value)(network)
        powers = [jnp.sum(w * g) for w, g in zip(_hidden(network), _hidden(slope), strict=True)]
        outputs, tested = network(inputs), network(test_inputs)
        return (
            *(now, _mean_loss(tested, test_targets, loss)),
            *(accuracy(outputs, targets), accuracy(tested, test_targets)),
            *(_features(network, inputs), outputs, powers[0] / powers[1]),
        )

    return eqx.filter_vmap(member)(networks, *data[:-1])


def _hidden(network: Any) -> tuple[Any, Any]:
    """The weights before and after the last hidden neurons."""
    layer = network.blocks[-1] if hasattr(network, "blocks") else network
    return layer.first, layer.second


def _features(network: Any, inputs: Any) -> Any:
    return network.features(inputs) if hasattr(network, "features") else network.activation(inputs @ network.first)
