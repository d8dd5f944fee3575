"""Two-layer ReLU networks in single precision with Gaussian initial weights."""

from __future__ import annotations

import equinox as eqx
import numpy as np

from dynascope.networks.mlp import MLP

__all__ = ["gaussian_mlp"]


def gaussian_mlp(widths: tuple[int, int, int], deviation: float, seed: int, *, present: int | None = None) -> MLP:
    """A float32 two-layer ReLU network with Gaussian weights and hidden biases, and zero output bias.

    Args:
        widths: (d, hidden neurons, c).
        deviation: Standard deviation of the weights.
        seed: Seed of the weights.
        present: Number of neurons with nonzero weights, by default all. The other neurons receive no gradient; they pad
            networks of different widths to one shape.
    """
    draw = np.random.default_rng([seed, 3])
    inputs, hidden, outputs = widths
    first, bias, second = (deviation * draw.normal(size=size) for size in ((inputs, hidden), hidden, (hidden, outputs)))
    there = np.arange(hidden) < (hidden if present is None else present)
    weights = (first * there, second * there[:, None])
    arrays = (*weights, bias * there, np.zeros(outputs))
    return eqx.tree_at(
        lambda network: (*network.weights, *network.biases), MLP(widths), [each.astype(np.float32) for each in arrays]
    )
