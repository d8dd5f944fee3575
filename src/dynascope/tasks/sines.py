"""Sines on the unit interval, the modes of functions of one place."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

__all__ = ["centres", "sines"]


def sines(x: Float[np.ndarray, " n"], modes: int) -> Float[np.ndarray, "n p"]:
    """√2 sin(2πkx) for k = 1, …, p, orthonormal on the unit interval, (n, p).

    Example:
        >>> basis = sines(centres(8), 3)
        >>> np.allclose(basis.T @ basis / 8, np.eye(3))
        True
    """
    return np.sqrt(2) * np.sin(2 * np.pi * np.outer(x, np.arange(1, modes + 1)))


def centres(count: int) -> Float[np.ndarray, " count"]:
    """The middles of equal parts of the unit interval.

    Example:
        >>> centres(2).tolist()
        [0.25, 0.75]
    """
    return (np.arange(count) + 0.5) / count
