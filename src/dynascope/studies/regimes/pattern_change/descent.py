"""Gradient descent of small two-layer networks, with all weights recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from dynascope.networks import TwoLayer
from dynascope.tasks import Task
from dynascope.training import Descent, descend

__all__ = ["trained_networks"]


def trained_networks(
    task: Task,
    output_weights: np.ndarray,
    input_weights: np.ndarray,
    activation: str,
    learning_rate: float,
    save: Sequence[int],
) -> xr.Dataset:
    """Train networks by gradient descent.

    Args:
        task: The task, with one output.
        output_weights: Initial a, shape (networks, width).
        input_weights: Initial W, shape (networks, width, d).
        activation: Name of the activation.
        learning_rate: η.
        save: Recorded steps; training ends at the last one.

    Returns:
        A record with `loss` (seed, step), `output_weight` (seed, step, neuron) and `weights` (seed, step, neuron,
        feature), where seed numbers the networks.
    """
    _, width, dimension = input_weights.shape
    blank = TwoLayer(dimension, width, 1, activation=activation)
    neurons = np.concatenate([input_weights, output_weights[..., None]], axis=-1)
    networks = [blank.with_neurons(each) for each in neurons]
    method = Descent(learning_rate=learning_rate, steps=int(save[-1]), save=save, statistics=_WEIGHTS)
    return descend(task, networks, method)


def _output_weights(network: TwoLayer) -> Any:
    return network.second[:, 0]


def _input_weights(network: TwoLayer) -> Any:
    return network.first.T


_WEIGHTS = {"output_weight": (_output_weights, ("neuron",)), "weights": (_input_weights, ("neuron", "feature"))}
