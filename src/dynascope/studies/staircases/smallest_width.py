"""The smallest width at which training reaches a loss, and the best loss for each width."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dynascope.flows import track
from dynascope.networks import TwoLayer
from dynascope.protocols import Learnable
from dynascope.training.descend import Descent, descend

__all__ = ["best_of_widths", "smallest_width"]


def smallest_width(
    task: Learnable,
    networks: Callable[[int], Sequence[Any]],
    target: float,
    *,
    smallest: int,
    largest: int,
    steps: int,
    **options: Any,
) -> tuple[int, float]:
    """Double the width until the best of several networks reaches a loss; return the width and the loss.

    Args:
        networks: Function that returns the networks of a given width.
        task: The task to learn.
        target: The loss to reach.
        smallest: The first width.
        largest: The largest width. The returned width is 0 if no width reaches the loss.
        steps: Number of training steps.
        **options: Further fields of `Descent`.
    """
    loss, width = float("inf"), smallest
    while width <= largest:
        record = descend(task, networks(width), Descent(steps=steps, save=[0, steps], **options))
        loss = float(record["loss"].isel(step=-1).min())
        if loss <= target:
            return width, loss
        width *= 2
    return 0, loss


def best_of_widths(
    sizes: tuple[int, int, int], activation: str, task: Learnable, *, steps: int, seeds: int, seed: int, **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The best loss of two-layer networks over seeds and learning rates for each width, and the training times.

    Args:
        sizes: Numbers of inputs, of neurons in the widest network, and of outputs.
        activation: Activation of the neurons.
        task: The task to learn.
        steps: Number of training steps.
        seeds: Number of initialisations.
        seed: Seed of the batches.
        **options: Further fields of `Descent`.
    """
    inputs, widest, outputs = sizes

    def best(width: int, steps: int) -> float:
        networks = [TwoLayer(inputs, width, outputs, activation=activation, seed=seed) for seed in range(seeds)]
        # Neurons with zero weights stay zero, so that one compiled program serves all widths.
        rows = [np.pad(network.neurons, ((0, widest - width), (0, 0))) for network in networks]
        padded = [network.with_neurons(each) for network, each in zip(networks, rows, strict=True)]
        record = descend(task, padded, Descent(steps=steps, save=[0, steps], **options), seed=seed)
        return float(record["loss"].isel(step=-1).min())

    best(1, 1)  # compiles
    losses, seconds = [], []
    for width in track(range(1, widest + 1), "widths"):
        began = time.perf_counter()
        losses.append(best(width, steps))
        seconds.append(time.perf_counter() - began)
    return np.array(losses), np.array(seconds)
