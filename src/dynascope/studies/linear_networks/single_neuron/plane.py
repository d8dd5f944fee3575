"""Where vectors are in the plane of a start and a target."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

__all__ = ["in_plane"]

_ROUNDING = 1e-9  # of the start: what rounding makes across a target along which it is


def in_plane(
    vectors: Float[np.ndarray, "... d"], start: Float[np.ndarray, " d"], target: Float[np.ndarray, " d"]
) -> tuple[Float[np.ndarray, ...], Float[np.ndarray, ...]]:
    """Their coordinates along the target, and across it to the side of the start; zero where this has no side.

    Example:
        >>> [each.tolist() for each in in_plane(np.array([[3.0, 4.0]]), np.array([1.0, -1.0]), np.array([2.0, 0.0]))]
        [[3.0], [-4.0]]
    """
    along = target / np.linalg.norm(target)
    across = start - along * (start @ along)
    length = np.linalg.norm(across)
    across = across / length if length > _ROUNDING * np.linalg.norm(start) else 0 * across
    return vectors @ along, vectors @ across
