"""Measures of how far training has moved a deep network, at equal values of its loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from dynascope.compilation import filter_jit
from dynascope.probes.activation_patterns import count_flips, hamming_distance
from dynascope.probes.kernel import kernel_distance
from dynascope.studies.regimes.kernel_movement.networks import DeepReLU
from dynascope.tasks import Task

__all__ = ["Movement", "at_fractions", "flat_weights", "movement", "tangent_kernel"]


class Movement(NamedTuple):
    """How far training has moved a network at each recorded step.

    Attributes:
        kernel_distance: 1 − ⟨K_0, K⟩/(‖K_0‖ ‖K‖), shape (steps,).
        hamming_distance: Fraction of flipped activations on the training inputs, shape (steps,).
        parameter_distance: ‖θ − θ_0‖, shape (steps,).
        test_loss: Half the mean squared error on the test inputs, shape (steps,).
        layer_hamming_distance: The fraction of flipped activations of each hidden layer, shape (steps, layers).
    """

    kernel_distance: np.ndarray
    hamming_distance: np.ndarray
    parameter_distance: np.ndarray
    test_loss: np.ndarray
    layer_hamming_distance: np.ndarray


def flat_weights(network: DeepReLU) -> Any:
    """All weights of a network, shape (p,)."""
    return ravel_pytree(network)[0]


@filter_jit
def tangent_kernel(network: DeepReLU, inputs: Any, samples: int) -> Any:
    """Compute the exact NTK J Jᵀ of the outputs on the first samples of the training batch, shape (samples, samples).

    With batch normalisation, the gradients include those of the batch statistics, as in training.
    """
    weights, unravelled = ravel_pytree(network)
    jacobian = jax.jacrev(lambda moved: unravelled(moved)(inputs)[:samples, 0])(weights)
    return jacobian @ jacobian.T


def movement(network: DeepReLU, path: np.ndarray, task: Task, test: Task, kernel_samples: int) -> Movement:
    """Measure a training run.

    Args:
        network: A network with the shapes of the weights.
        path: All weights at each recorded step, from step zero, shape (steps, p).
        task: Training data.
        test: Test data, on which normalisation uses the statistics of the training inputs.
        kernel_samples: Number of training samples on which the NTK is computed.
    """
    kernels, signals, losses = jax.device_get(
        _recorded(network, path, (task.inputs, test.inputs, test.targets), kernel_samples)
    )
    flips = hamming_distance(count_flips([each[0] for each in signals], list(signals)))
    return Movement(
        np.array([kernel_distance(kernels[0], each) for each in kernels], float),
        np.asarray(flips.hamming_distance),
        np.linalg.norm(path - path[0], axis=1),
        np.asarray(losses),
        np.asarray(flips.layer_hamming_distance),
    )


def at_fractions(loss: np.ndarray, values: np.ndarray, fractions: Sequence[float]) -> np.ndarray:
    """Interpolate a measure at the first times when the loss has fallen to fractions of its initial value.

    Interpolation is linear in the logarithm of the lowest loss so far. Fractions that are not reached have the last
    value.

    Example:
        >>> at_fractions(np.array([1.0, 0.1, 0.01]), np.array([0.0, 1.0, 3.0]), [0.1, 0.01]).tolist()
        [1.0, 3.0]
    """
    lowest = np.maximum(np.minimum.accumulate(loss) / loss[0], np.finfo(float).tiny)
    return np.interp(-np.log(np.asarray(fractions)), -np.log(lowest), values)


@filter_jit
def _recorded(network: DeepReLU, path: Any, data: Any, samples: int) -> Any:
    """The kernel, the inputs of every ReLU on the training batch, and the test loss, at every recorded step."""
    inputs, test_inputs, test_targets = data
    _, unravelled = ravel_pytree(network)

    def measured(weights: Any) -> Any:
        moved = unravelled(weights)
        errors = moved.layers(test_inputs, inputs)[-1] - test_targets
        return tangent_kernel(moved, inputs, samples), moved.layers(inputs, inputs)[:-1], jnp.mean(errors**2) / 2

    return jax.lax.map(measured, path)
