"""MLPs on classes of images, trained by Adam at some dials, and kept on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from dynascope.flows import scaled_network
from dynascope.flows.steps.descend import descend
from dynascope.networks import MLP
from dynascope.tasks import Task
from dynascope.theory.grokking.twins import Dials

__all__ = ["dialled_network", "train_dialled"]


def dialled_network(run: Dials, widths: Sequence[int], *, weight_decay: float, seed: int) -> scaled_network.ScaledError:
    """A tanh MLP with its dials at the start, in single precision.

    Example:
        >>> network = dialled_network(Dials(1.0, 2.0, first_layer=0.5), (3, 4, 2), weight_decay=0.1, seed=0)
        >>> float(network.target_scale), [float(each) for each in network.gauge.weights]
        (2.0, [0.5, 1.0])
    """
    network = MLP(widths, activation="tanh", scale=run.weight, seed=seed)
    hidden = len(widths) - 2
    factors = (run.first_layer, *(1.0,) * (hidden - 1), run.last_layer)
    biases = (*(1.0,) * hidden, run.last_layer)
    gauge = jax.tree.unflatten(jax.tree.structure(network), (*factors, *biases))
    started = jax.tree.map(np.multiply, network, gauge)
    dials = (run.target, run.input, run.output, run.decay * weight_decay, 1 / run.decay)
    whole = scaled_network.ScaledError(started, gauge, *dials)
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), whole)


def train_dialled(
    networks: Sequence[scaled_network.ScaledError],
    inputs: np.ndarray,
    targets: np.ndarray,
    *,
    recorded: np.ndarray,
    **options: Any,
) -> tuple[np.ndarray, list[Any]]:
    """Train all from the same seed in one program.

    Args:
        networks: Differ in their dials.
        inputs: Shape (n, d).
        targets: Shape (n, c), before they are scaled.
        recorded: Steps at which they are recorded, from 0 to the last.
        **options: `learning_rate`, `batch_size` and `seed`.

    Returns:
        The losses, shape (networks, steps), and each network as it was at these steps.
    """
    # The network returns its error, so that the factor on the targets is no part of the program.
    record = descend(
        networks,
        Task(np.concatenate([inputs, targets], axis=1), np.zeros_like(targets)),
        steps=int(recorded[-1]),
        optimizer=scaled_network.adam_with_decay,
        record_steps=recorded,
        statistics=scaled_network.STATISTICS,
        **options,
    )
    rows = record["weights"].to_numpy()
    kept = [scaled_network.unravelled(start, weights) for start, weights in zip(networks, rows, strict=True)]
    return record["loss"].to_numpy().astype(float), kept
