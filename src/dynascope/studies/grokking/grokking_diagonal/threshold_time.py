"""The time at which a recorded curve falls below a threshold."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

__all__ = ["passage"]


def passage(times: Float[np.ndarray, " times"], values: Float[np.ndarray, " times"], threshold: float) -> float:
    """The time at which positive values fall below a threshold, by log-linear interpolation; ∞ if they never do.

    Example:
        >>> passage(np.array([0.0, 1.0, 2.0]), np.array([4.0, 1.0, 0.5]), 2.0), passage(np.ones(1), np.ones(1), 0.5)
        (0.5, inf)
    """
    below = values < threshold
    if not below.any():
        return np.inf
    after = max(int(np.argmax(below)), 1)
    part = np.log(values[after - 1] / threshold) / np.log(values[after - 1] / values[after])
    return float(times[after - 1] + part * (times[after] - times[after - 1]))
