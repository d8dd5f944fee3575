"""Tree networks: one quadratic block joins neighbours, level by level."""

from __future__ import annotations

import equinox as eqx
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.networks.recurrent import elements
from dynascope.validation import array_namespace, checked, require_room
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

__all__ = ["Tree"]


class Tree(eqx.Module):
    """Joins neighbours a, b into (a W_left + b W_right)^{⊙2} W_out, level by level, until one element is left: f(x).

    A sequence of k elements takes ⌈log₂ k⌉ levels with the same weights, so that one network serves every k ≥ 2; for
    k = 2 it is a two-layer network of quadratic neurons. A joined pair is again an element, so what has no neighbour
    on a level goes to the next one unchanged. The weights are Gaussian with standard deviation 1/√width, times `scale`.

    Attributes:
        left: W_left, shape (m, width), reads the left element of a pair.
        right: W_right, shape (m, width), reads the right one.
        output: W_out, shape (width, m).

    Args:
        element_dimension: m, the length of one element of a sequence, and of the output.
        width: Number of hidden neurons that join a pair.
        scale: Factor on every weight.
        seed: Seed of the draw.

    Raises:
        InputError: A dimension or the scale is not positive, or a sequence does not hold two or more whole elements.

    Reference:
        G. L. Marchetti et al., Sequential Group Composition, arXiv 2602.03655.

    Example:
        >>> network = Tree(3, 5)
        >>> network(np.ones((4, 6))).shape, network(np.ones((4, 15))).shape
        ((4, 3), (4, 3))
    """

    left: Float[Array | np.ndarray, "m width"]
    right: Float[Array | np.ndarray, "m width"]
    output: Float[Array | np.ndarray, "width m"]

    @checked
    def __init__(
        self,
        element_dimension: PositiveInt,
        width: PositiveInt,
        *,
        scale: PositiveFloat = 1.0,
        seed: Seed = 0,
    ):
        require_room(3 * element_dimension * width, element_dimension=element_dimension, width=width)
        draw = np.random.default_rng(seed)
        deviation = scale / np.sqrt(width)
        self.left = draw.normal(size=(element_dimension, width)) * deviation
        self.right = draw.normal(size=(element_dimension, width)) * deviation
        self.output = draw.normal(size=(width, element_dimension)) * deviation

    def __call__(self, x: Float[Array | np.ndarray, "... k_m"]) -> Float[Array | np.ndarray, "... m"]:
        """Outputs for one sequence, its k elements one after the other in a row, or for a batch."""
        sequence = elements(x, self.left.shape[0])
        while (length := sequence.shape[-2]) > 1:
            paired = 2 * (length // 2)
            joined = self.join(sequence[..., 0:paired:2, :], sequence[..., 1:paired:2, :])
            sequence = array_namespace(joined).concatenate([joined, sequence[..., paired:, :]], axis=-2)
        return sequence[..., 0, :]

    def join(
        self, left: Float[Array | np.ndarray, "... m"], right: Float[Array | np.ndarray, "... m"]
    ) -> Float[Array | np.ndarray, "... m"]:
        """(a W_left + b W_right)^{⊙2} W_out, one element for each pair."""
        return (left @ self.left + right @ self.right) ** 2 @ self.output
