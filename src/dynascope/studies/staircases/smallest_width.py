"""How wide a network must be for its training to reach a loss, and how good training makes each width."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dynascope.networks import TwoLayer
from dynascope.protocols import Learnable
from dynascope.training.descend import descend

__all__ = ["best_of_widths", "smallest_width"]


def smallest_width(
    networks: Callable[[int], Sequence[Any]],
    task: Learnable,
    target: float,
    *,
    smallest: int,
    largest: int,
    steps: int,
    **options: Any,
) -> tuple[int, float]:
    """The smallest width, by doubling, at which the best of several networks reaches a loss, and the loss there.

    Args:
        networks: Those of a width.
        task: What they learn.
        target: The loss to reach.
        smallest: Width at which to start.
        largest: Width at which to stop; where none reaches the loss the width is 0.
        steps: Of each training.
        **options: Of `training.descend`.
    """
    loss, width = float("inf"), smallest
    while width <= largest:
        record = descend(networks(width), task, steps=steps, record_steps=[0, steps], **options)
        loss = float(record["loss"].isel(step=-1).min())
        if loss <= target:
            return width, loss
        width *= 2
    return 0, loss


def best_of_widths(
    sizes: tuple[int, int, int], activation: str, task: Learnable, *, steps: int, seeds: int, **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The best loss of two-layer networks of each width over seeds and rates, and the seconds that finding it took.

    Args:
        sizes: Numbers of inputs, of neurons of the widest, and of outputs.
        activation: Of the neurons.
        task: What they learn.
        steps: Of each training.
        seeds: Number of starts.
        **options: Of `training.descend`.
    """
    inputs, widest, outputs = sizes

    def best(width: int, steps: int) -> float:
        networks = [TwoLayer(inputs, width, outputs, activation=activation, seed=seed) for seed in range(seeds)]
        # Neurons of zero weights stay zero, so that one program serves all widths.
        rows = [np.pad(network.neurons, ((0, widest - width), (0, 0))) for network in networks]
        padded = [network.with_neurons(each) for network, each in zip(networks, rows, strict=True)]
        return float(descend(padded, task, steps=steps, record_steps=[0, steps], **options)["loss"].isel(step=-1).min())

    best(1, 1)  # compiles
    losses, seconds = [], []
    for width in range(1, widest + 1):
        began = time.perf_counter()
        losses.append(best(width, steps))
        seconds.append(time.perf_counter() - began)
    return np.array(losses), np.array(seconds)
