"""Two-layer diagonal linear networks."""

from __future__ import annotations

import equinox as eqx
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.validation import array_namespace, checked, require_room
from dynascope.validation.bounded import PositiveFloat, PositiveInt

__all__ = ["DiagonalLinear"]


class DiagonalLinear(eqx.Module):
    """A two-layer diagonal linear network f(x) = (u ⊙ v)ᵀ x, the simplest network that selects features.

    The initial weights are u = scale·1 and v = 0. The initial function is therefore zero, and the data determine the
    trajectory.

    Attributes:
        u: Weights of the first layer, shape (d,).
        v: Weights of the second layer, shape (d,).

    Args:
        input_dimension: Number d of inputs.
        scale: Initial value of every entry of u.

    Raises:
        InputError: If the dimension or the scale is not positive.

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
        """Degree of homogeneity κ of the network in its weights."""
        return 2

    @property
    def coefficients(self) -> Float[Array | np.ndarray, " d"]:
        """β = u ⊙ v, the linear map that the network computes."""
        return self.u * self.v

    @property
    def exchangeable(self) -> bool:
        """Whether all neurons compute the same function of their weights; False, because their inputs differ."""
        return False

    @property
    def neurons(self) -> Float[Array | np.ndarray, "d 2"]:
        """Θ, shape (d, 2): the weights u and v of the neuron of each input."""
        return array_namespace(self.u).stack([self.u, self.v], axis=1)

    def with_neurons(self, rows: Float[Array | np.ndarray, "d 2"]) -> DiagonalLinear:
        """Replace the weights."""
        return eqx.tree_at(lambda network: (network.u, network.v), self, (rows[:, 0], rows[:, 1]))

    def weighted(self, coefficients: Float[Array | np.ndarray, " d"]) -> DiagonalLinear:
        """Multiply the output of each neuron i by c_i: Σ_i c_i f_i."""
        return eqx.tree_at(lambda network: network.v, self, coefficients * self.v)

    def __call__(self, x: Float[Array | np.ndarray, "... d"]) -> Float[Array | np.ndarray, "... 1"]:
        """Compute the outputs for one sample or a batch."""
        return (x @ self.coefficients)[..., None]
