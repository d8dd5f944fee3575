"""A two-layer network with hidden biases and output biases."""

from __future__ import annotations

import equinox as eqx
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.networks.two_layer import HomogeneousActivation, TwoLayer
from dynascope.validation import array_namespace, require

__all__ = ["BiasedTwoLayer"]


class BiasedTwoLayer(eqx.Module):
    """A two-layer network f(x) = σ(x W₁ + b) W₂ + c, with a homogeneous activation σ of degree one.

    The hidden biases b are the weights of a further input that is always one, so each neuron is homogeneous of degree
    two in its weights (w, b, a). The output bias c is not part of a neuron. If the initial weights are small, c
    converges to the mean residual within a time of order one, while the neurons are still small.

    Attributes:
        inner: The network without its output bias. If `has_hidden_biases`, its inputs have a one appended.
        bias: c, shape (c,); None for a network without an output bias.
        has_hidden_biases: Whether the hidden neurons have biases.

    Args:
        inner: The network without its output bias.
        bias: c.
        has_hidden_biases: Whether the last input of `inner` is the constant one.

    Raises:
        InputError: If the hidden neurons have biases, and the activation has a degree other than one.

    Example:
        >>> network = BiasedTwoLayer(TwoLayer(3 + 1, 5, 2, activation="relu"), bias=np.array([1.0, -1.0]))
        >>> network(np.zeros((4, 3))).shape, network.degree, network.neurons.shape
        ((4, 2), 2, (5, 6))
    """

    inner: TwoLayer
    bias: Float[Array | np.ndarray, " c"] | None
    has_hidden_biases: bool = eqx.field(static=True)

    def __init__(
        self, inner: TwoLayer, bias: Float[Array | np.ndarray, " c"] | None = None, *, has_hidden_biases: bool = True
    ):
        degree = inner.activation.degree
        require(
            not has_hidden_biases or degree == 1,
            f"the hidden neurons have biases, but the activation {inner.activation.name} has degree {degree}",
            argument="network",
            value=degree,
            remedy="omit the biases of the hidden layer (bias=False), or use an activation of degree one, such as ReLU",
        )
        self.inner, self.bias, self.has_hidden_biases = inner, bias, has_hidden_biases

    @property
    def input_dimension(self) -> int:
        """Number of inputs, without the constant one."""
        return self.inner.first.shape[0] - self.has_hidden_biases

    @property
    def activation(self) -> HomogeneousActivation:
        """The activation σ."""
        return self.inner.activation

    @property
    def second(self) -> Float[Array | np.ndarray, "width c"]:
        """W₂."""
        return self.inner.second

    @property
    def degree(self) -> int:
        """Degree of homogeneity κ of the neurons in their weights."""
        return self.inner.degree

    @property
    def neurons(self) -> Float[Array | np.ndarray, "width weights"]:
        """Θ, shape (width, d + 1 + c): each row holds the input weights, bias and output weights of one neuron."""
        return self.inner.neurons

    def with_neurons(self, rows: Float[Array | np.ndarray, "neurons weights"]) -> BiasedTwoLayer:
        """Replace the weights of the neurons; their number can change, and the output bias is kept."""
        return eqx.tree_at(lambda network: network.inner, self, self.inner.with_neurons(rows))

    def weighted(self, coefficients: Float[Array | np.ndarray, " width"]) -> BiasedTwoLayer:
        """Multiply the output of each neuron i by a coefficient; the output bias is kept."""
        return eqx.tree_at(lambda network: network.inner, self, self.inner.weighted(coefficients))

    def __call__(self, x: Float[Array | np.ndarray, "... d"]) -> Float[Array | np.ndarray, "... c"]:
        """Compute the outputs for one sample or a batch."""
        namespace = array_namespace(x)
        if self.has_hidden_biases:
            x = namespace.concatenate([x, namespace.ones((*x.shape[:-1], 1), x.dtype)], axis=-1)
        outputs = self.inner(x)
        return outputs if self.bias is None else outputs + self.bias
