"""A step function on a line."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

__all__ = ["step_on_a_line"]


def step_on_a_line(
    samples: int, draw: np.random.Generator
) -> tuple[Float[np.ndarray, "_ 1"], Float[np.ndarray, "_ 1"]]:
    """Training inputs on a grid over [−1, 1] and as many random held-out inputs; targets are 0 below zero and 1 above.

    Example:
        >>> x, y = step_on_a_line(4, np.random.default_rng(0))
        >>> x[:4, 0].tolist(), y[:4, 0].tolist()
        ([-0.75, -0.25, 0.25, 0.75], [0.0, 0.0, 1.0, 1.0])
    """
    grid = (2 * np.arange(samples) + 1) / samples - 1
    x = np.concatenate([grid, draw.uniform(-1, 1, samples)])[:, None]
    return x, (x > 0).astype(float)
