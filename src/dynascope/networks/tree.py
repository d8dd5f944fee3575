"""Tree networks with quadratic neurons."""

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
    """A tree network that joins neighbouring elements level by level until a single element f(x) remains.

        join(a, b) = (a W_left + b W_right)^{⊙2} W_out

    The network processes sequences of any length k ≥ 2 in ⌈log₂ k⌉ levels with the same weights. For k = 2, the network
    is a two-layer network of quadratic neurons. If a level has an odd number of elements, the last element moves to the
    next level unchanged. The weights are Gaussian with standard deviation `scale`/√width.

    Attributes:
        left: Input weights W_left of the left element, shape (m, width).
        right: Input weights W_right of the right element, shape (m, width).
        output: Output weights W_out, shape (width, m).

    Args:
        element_dimension: Length m of one element of a sequence and of the output.
        width: Number of hidden neurons.
        scale: Factor on every weight.
        seed: Seed of the draw.

    Raises:
        InputError: If a dimension or the scale is not positive, or if a sequence does not consist of at least two whole
            elements.

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
        """Compute the outputs for one sequence or a batch; each row contains the k elements one after the other."""
        sequence = elements(x, self.left.shape[0])
        while (length := sequence.shape[-2]) > 1:
            paired = 2 * (length // 2)
            joined = self.join(sequence[..., 0:paired:2, :], sequence[..., 1:paired:2, :])
            sequence = array_namespace(joined).concatenate([joined, sequence[..., paired:, :]], axis=-2)
        return sequence[..., 0, :]

    def join(
        self, left: Float[Array | np.ndarray, "... m"], right: Float[Array | np.ndarray, "... m"]
    ) -> Float[Array | np.ndarray, "... m"]:
        """Join pairs of elements, (a W_left + b W_right)^{⊙2} W_out."""
        return (left @ self.left + right @ self.right) ** 2 @ self.output
