"""Diagonal linear networks: one two-layer linear neuron for each input coordinate."""

from __future__ import annotations

import equinox as eqx
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.validation import array_namespace, checked, require_room
from dynascope.validation.bounded import PositiveFloat, PositiveInt

__all__ = ["DiagonalLinear"]


class DiagonalLinear(eqx.Module):
    """f(x) = (u ⊙ v)ᵀ x, the simplest network that selects features.

    The start is u = scale·1, v = 0, so that the function is zero and the training path is determined by the data.

    Attributes:
        u: First weights, shape (d,).
        v: Second weights, shape (d,).

    Args:
        input_dimension: d.
        scale: Initial value of every u.

    Raises:
        InputError: The dimension or the scale is not positive.

    Example:
        >>> import jax.numpy as jnp
        >>> network = DiagonalLinear(3)
        >>> network(jnp.ones((4, 3))).shape, network.degree
        ((4, 1), 2)
    """

    u: Float[Array | np.ndarray, " d"]
    v: Float[Array | np.ndarray, " d"]

    @checked
    def __init__(self, input_dimension: PositiveInt, *, scale: PositiveFloat = 1.0):
        require_room(2 * input_dimension, input_dimension=input_dimension)
        self.u = np.full(input_dimension, scale)
        self.v = np.zeros(input_dimension)

    @property
    def degree(self) -> int:
        """Degree of homogeneity κ of the network in all its weights."""
        return 2

    @property
    def coefficients(self) -> Float[Array | np.ndarray, " d"]:
        """β = u ⊙ v, the linear map that the network computes."""
        return self.u * self.v

    @property
    def exchangeable(self) -> bool:
        """Whether all neurons compute the same function of their weights; here each reads its own input."""
        return False

    @property
    def neurons(self) -> Float[Array | np.ndarray, "d 2"]:
        """Θ, shape (d, 2): u and v of the neuron that reads each input."""
        return array_namespace(self.u).stack([self.u, self.v], axis=1)

    def with_neurons(self, rows: Float[Array | np.ndarray, "d 2"]) -> DiagonalLinear:
        """The same network with other weights."""
        return eqx.tree_at(lambda network: (network.u, network.v), self, (rows[:, 0], rows[:, 1]))

    def weighted(self, coefficients: Float[Array | np.ndarray, " d"]) -> DiagonalLinear:
        """Σ_i c_i f_i, the network with the output of its neuron i multiplied by c_i."""
        return eqx.tree_at(lambda network: network.v, self, coefficients * self.v)

    def __call__(self, x: Float[Array | np.ndarray, "... d"]) -> Float[Array | np.ndarray, "... 1"]:
        """Outputs for one sample or a batch."""
        return (x @ self.coefficients)[..., None]
