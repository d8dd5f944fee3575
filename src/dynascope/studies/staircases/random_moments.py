"""Random covariances and maps whose variances and strengths are given."""

from __future__ import annotations

import numpy as np

__all__ = ["covariance", "orthonormal"]


def orthonormal(draw: np.random.Generator, dimension: int, columns: int | None = None) -> np.ndarray:
    """Random orthonormal columns, shape (dimension, columns); a basis if their number is not said."""
    return np.linalg.qr(draw.normal(size=(dimension, dimension if columns is None else columns)))[0]


def covariance(draw: np.random.Generator, dimension: int, condition: float) -> np.ndarray:
    """A randomly turned covariance of variances from 1 to 1/condition, spaced geometrically."""
    turn = orthonormal(draw, dimension)
    return (turn * np.geomspace(1.0, 1.0 / condition, dimension)) @ turn.T
