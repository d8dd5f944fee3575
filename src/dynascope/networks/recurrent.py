"""Recurrent networks with quadratic neurons."""

from __future__ import annotations

import equinox as eqx
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.validation import checked, require, require_room
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

__all__ = ["Recurrent", "elements"]


class Recurrent(eqx.Module):
    """A recurrent network with quadratic neurons that processes a sequence one element at a time.

        f(x) = h_k W_out,   h_{t+1} = (h_t W_mix + x_{t+1} W_drive)^{⊙2},   h₂ = (x₁ W_first + x₂ W_drive)^{⊙2}

    The network processes sequences of any length k ≥ 2 in k − 1 steps. For k = 2, the network is a two-layer network of
    quadratic neurons. The weights are Gaussian with standard deviation `scale`/√width.

    Attributes:
        first: Input weights W_first of the first element, shape (m, width).
        drive: Input weights W_drive of all other elements, shape (m, width).
        mix: Recurrent weights W_mix, shape (width, width).
        output: Output weights W_out, shape (width, c).

    Args:
        element_dimension: Length m of one element of a sequence.
        width: Number of hidden neurons.
        output_dimension: Number c of outputs.
        scale: Factor on every weight.
        seed: Seed of the draw.

    Raises:
        InputError: If a dimension or the scale is not positive, or if a sequence does not consist of at least two whole
            elements.

    Reference:
        G. L. Marchetti et al., Sequential Group Composition, arXiv 2602.03655.

    Example:
        >>> network = Recurrent(3, 5, 2)
        >>> network(np.ones((4, 6))).shape, network(np.ones((4, 15))).shape
        ((4, 2), (4, 2))
    """

    first: Float[Array | np.ndarray, "m width"]
    drive: Float[Array | np.ndarray, "m width"]
    mix: Float[Array | np.ndarray, "width width"]
    output: Float[Array | np.ndarray, "width c"]

    @checked
    def __init__(
        self,
        element_dimension: PositiveInt,
        width: PositiveInt,
        output_dimension: PositiveInt,
        *,
        scale: PositiveFloat = 1.0,
        seed: Seed = 0,
    ):
        sizes = {"element_dimension": element_dimension, "width": width, "output_dimension": output_dimension}
        require_room((2 * element_dimension + width + output_dimension) * width, **sizes)
        draw = np.random.default_rng(seed)
        deviation = scale / np.sqrt(width)
        self.first = draw.normal(size=(element_dimension, width)) * deviation
        self.drive = draw.normal(size=(element_dimension, width)) * deviation
        self.mix = draw.normal(size=(width, width)) * deviation
        self.output = draw.normal(size=(width, output_dimension)) * deviation

    def __call__(self, x: Float[Array | np.ndarray, "... k_m"]) -> Float[Array | np.ndarray, "... c"]:
        """Compute the outputs for one sequence or a batch; each row contains the k elements one after the other."""
        sequence = elements(x, self.first.shape[0])
        read = sequence[..., 0, :] @ self.first
        hidden = (read + sequence[..., 1, :] @ self.drive) ** 2
        for step in range(2, sequence.shape[-2]):
            hidden = (hidden @ self.mix + sequence[..., step, :] @ self.drive) ** 2
        return hidden @ self.output


def elements(x: Float[Array | np.ndarray, "... k_m"], length: int) -> Float[Array | np.ndarray, "... k m"]:
    """Split rows into elements.

    Args:
        x: Rows of k elements, shape (..., k·m).
        length: Length m of one element.

    Raises:
        InputError: If a row does not consist of at least two whole elements.

    Example:
        >>> elements(np.arange(6.0), 3)
        array([[0., 1., 2.],
               [3., 4., 5.]])
    """
    columns = x.shape[-1]
    require(
        columns >= 2 * length and columns % length == 0,
        f"x has shape {x.shape}, but the length of an element is {length}",
        argument="x",
        value=columns,
        remedy="give at least two whole elements per row",
    )
    return x.reshape(*x.shape[:-1], columns // length, length)
