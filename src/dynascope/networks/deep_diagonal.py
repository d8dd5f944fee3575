"""Diagonal linear networks of any depth D ≥ 2."""

from __future__ import annotations

from typing import Annotated

import equinox as eqx
import numpy as np
from annotated_types import Ge
from jax import Array
from jaxtyping import Float

from dynascope.validation import checked, require_room
from dynascope.validation.bounded import PositiveFloat, PositiveInt

__all__ = ["DeepDiagonal"]


class DeepDiagonal(eqx.Module):
    """A deep diagonal linear network, parametrised by elementwise powers of its weights.

        f(x) = (u^D − v^D)ᵀ x

    The initial weights are u = v = scale·1. The initial function is therefore zero, and the data determine the
    trajectory. The power u^D represents the product of D equal diagonal layers.

    Attributes:
        u: Weights of the positive part, shape (d,).
        v: Weights of the negative part, shape (d,).
        depth: Depth D.

    Args:
        input_dimension: Number d of inputs.
        depth: D ≥ 2.
        scale: Initial value of every weight.

    Raises:
        InputError: If the dimension or the scale is not positive, or if the depth is below two.

    Example:
        >>> import jax.numpy as jnp
        >>> network = DeepDiagonal(3, depth=4)
        >>> network(jnp.ones((5, 3))).shape, network.degree
        ((5, 1), 4)
    """

    u: Float[Array | np.ndarray, " d"]
    v: Float[Array | np.ndarray, " d"]
    depth: int = eqx.field(static=True)

    @checked
    def __init__(self, input_dimension: PositiveInt, depth: Annotated[int, Ge(2)] = 3, *, scale: PositiveFloat = 1.0):
        require_room(2 * input_dimension, input_dimension=input_dimension)
        self.u = np.full(input_dimension, scale)
        self.v = np.full(input_dimension, scale)
        self.depth = depth

    @property
    def degree(self) -> int:
        """Degree of homogeneity κ of the network in its weights, equal to the depth."""
        return self.depth

    @property
    def coefficients(self) -> Float[Array | np.ndarray, " d"]:
        """β = u^D − v^D, the linear map that the network computes."""
        return self.u**self.depth - self.v**self.depth

    def __call__(self, x: Float[Array | np.ndarray, "... d"]) -> Float[Array | np.ndarray, "... 1"]:
        """Compute the outputs for one sample or a batch."""
        return (x @ self.coefficients)[..., None]
