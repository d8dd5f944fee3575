"""Diagonal linear networks as a difference of squares, which can learn coefficients of either sign."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.validation import require_kind
from dynascope.validation.bounded_scalars import PositiveInt

__all__ = ["DifferenceOfSquares"]


class DifferenceOfSquares(eqx.Module):
    """f(x) = x·(u ⊙ u − v ⊙ v); all weights are initially one, so f is initially zero.

    Attributes:
        u: Weights of the positive part, shape (d,).
        v: Weights of the negative part, shape (d,).

    Args:
        input_dimension: d.

    Example:
        >>> DifferenceOfSquares(3)(np.ones((2, 3))).tolist()
        [[0.0], [0.0]]
    """

    u: Float[Array | np.ndarray, " d"]
    v: Float[Array | np.ndarray, " d"]

    def __init__(self, input_dimension: int):
        require_kind(PositiveInt, input_dimension=input_dimension)
        self.u, self.v = np.ones(input_dimension), np.ones(input_dimension)

    @property
    def coefficients(self) -> Any:
        """β = u ⊙ u − v ⊙ v, the coefficients of the linear function that the network computes."""
        return self.u**2 - self.v**2

    def __call__(self, x: Float[Array | np.ndarray, "... d"]) -> Float[Array | np.ndarray, "... 1"]:
        """Outputs for one sample or a batch."""
        return (x @ self.coefficients)[..., None]
