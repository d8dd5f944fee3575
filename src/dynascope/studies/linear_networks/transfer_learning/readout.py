"""Learning speed of a linear readout of features, and the share of a target that the readout can reach."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

__all__ = ["decay_rates", "reachable_share"]


def decay_rates(
    times: Float[np.ndarray, " times"], left: Float[np.ndarray, "... times modes"], least: float
) -> Float[np.ndarray, "... modes"]:
    """Decay rates of modes: slopes of −log(remaining part), fitted through zero while this part exceeds `least`.

    Example:
        >>> times = np.linspace(0, 9, 10)
        >>> decay_rates(times, np.exp(-times[:, None] * [0.5, 2.0]), 0.01).round(12)
        array([0.5, 2. ])
    """
    logarithms = -np.log(np.maximum(left, np.finfo(float).tiny))
    until = (left > least) * times[:, None]
    return np.sum(until * logarithms, axis=-2) / np.sum(until**2, axis=-2)


def reachable_share(first: Float[np.ndarray, "d h"], target: Float[np.ndarray, "d c"], least: float) -> float:
    """Share of the squared norm of a linear target in the span of the features x @ W of white inputs.

    Args:
        first: W.
        target: The target map.
        least: Size of a feature, relative to the largest, below which it counts as lost.

    Example:
        >>> reachable_share(np.diag([1.0, 1e-9]), np.array([[3.0], [4.0]]), 1e-6)
        0.36
    """
    directions, sizes, _ = np.linalg.svd(first, full_matrices=False)
    return float(np.sum((directions[:, sizes > least * sizes[0]].T @ target) ** 2) / np.sum(target**2))
