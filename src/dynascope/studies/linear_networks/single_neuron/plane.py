"""Coordinates of vectors in the plane of an initial vector and a target."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

__all__ = ["in_plane"]

_ROUNDING = 1e-9  # relative size below which a component across the target is a rounding error


def in_plane(
    vectors: Float[np.ndarray, "... d"], start: Float[np.ndarray, " d"], target: Float[np.ndarray, " d"]
) -> tuple[Float[np.ndarray, ...], Float[np.ndarray, ...]]:
    """Coordinates along the target and perpendicular to it (towards `start`); the latter are zero for parallel vectors.

    Example:
        >>> [each.tolist() for each in in_plane(np.array([[3.0, 4.0]]), np.array([1.0, -1.0]), np.array([2.0, 0.0]))]
        [[3.0], [-4.0]]
    """
    along = target / np.linalg.norm(target)
    across = start - along * (start @ along)
    length = np.linalg.norm(across)
    across = across / length if length > _ROUNDING * np.linalg.norm(start) else 0 * across
    return vectors @ along, vectors @ across
