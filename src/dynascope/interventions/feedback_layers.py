"""Dense and convolutional layers whose backward pass uses separate feedback weights in place of the weights."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.networks.convolution import convolved
from dynascope.validation import checked, require, require_shape
from dynascope.validation.bounded import PositiveInt

__all__ = ["FeedbackConvolution", "FeedbackDense", "FeedbackLayer", "with_feedback"]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def with_feedback(operator: Callable[[Any, Any], Any], x: Any, weights: Any, backward: Any) -> Any:
    """Apply a bilinear operator, and send errors back through other weights.

    The value is operator(x, weights). The gradient with respect to x is that of operator(x, backward); the gradient
    with respect to the weights is exact; the gradient with respect to the feedback weights is zero.

    Args:
        operator: Function of x and weights that is linear in each.
        x: Input.
        weights: Forward weights W.
        backward: Feedback weights B, of the same shape.

    Example:
        >>> slope = jax.grad(lambda x: with_feedback(jnp.dot, x, 2.0, 3.0))(1.0)
        >>> float(with_feedback(jnp.dot, 1.0, 2.0, 3.0)), float(slope)
        (2.0, 3.0)
    """
    return operator(x, weights)


def _forward(operator: Callable[[Any, Any], Any], x: Any, weights: Any, backward: Any) -> tuple[Any, Any]:
    return operator(x, weights), (x, weights, backward)


def _backward(operator: Callable[[Any, Any], Any], saved: Any, error: Any) -> tuple[Any, Any, Any]:
    x, weights, backward = saved
    (to_input,) = jax.vjp(lambda x: operator(x, backward), x)[1](error)
    (to_weights,) = jax.vjp(lambda weights: operator(x, weights), weights)[1](error)
    return to_input, to_weights, jax.tree.map(jnp.zeros_like, backward)


with_feedback.defvjp(_forward, _backward)


class FeedbackLayer(eqx.Module):
    """A layer z = W ∗ x + b that sends errors back through feedback weights B of the shape of W.

    With B = W, the layer is trained by backpropagation. Without B (None), as in the first layer of a network, the layer
    sends back exact errors.

    Attributes:
        weights: W.
        bias: b, shape (outputs,).
        backward: B, of the shape of W, or None.
    """

    weights: Float[Array | np.ndarray, "*_"]
    bias: Float[Array | np.ndarray, " outputs"]
    backward: Float[Array | np.ndarray, "*_"] | None

    @property
    def operator(self) -> Callable[[Any, Any], Any]:
        """The bilinear function of an input and weights that the layer applies to x and W."""
        raise NotImplementedError

    def __call__(self, x: Float[Array | np.ndarray, "n ..."]) -> Float[Array, "n ..."]:
        """Compute z for a batch."""
        x, weights = jnp.asarray(x), jnp.asarray(self.weights)
        if self.backward is None:
            return self.operator(x, weights) + self.bias
        z: Any = with_feedback(self.operator, x, weights, jnp.asarray(self.backward))
        return z + self.bias

    def _set(self, weights: Any, bias: Any, backward: Any) -> None:
        require_shape("bias", bias, (weights.shape[-1],))
        if backward is not None:
            require_shape("backward", backward, weights.shape)
        self.weights, self.bias, self.backward = weights, bias, backward


@checked
class FeedbackDense(FeedbackLayer):
    """A dense layer z = x W + b whose errors are sent back as δ Bᵀ instead of δ Wᵀ.

    An input with more than two axes, such as a batch of images, is flattened first.

    Attributes:
        weights: W, shape (inputs, outputs).
        bias: b, shape (outputs,).
        backward: B, shape (inputs, outputs), or None for exact errors.

    Raises:
        InputError: If the shapes do not match.

    References:
        Lillicrap et al., Nature Communications 7 (2016); Kunin et al., arXiv:2003.01513.

    Example:
        >>> layer = FeedbackDense(np.ones((2, 1)), np.zeros(1), np.array([[3.0], [4.0]]))
        >>> jax.grad(lambda x: layer(x).sum())(np.ones((1, 2))).tolist()
        [[3.0, 4.0]]
    """

    def __init__(
        self,
        weights: Float[Array | np.ndarray, "inputs outputs"],
        bias: Float[Array | np.ndarray, " outputs"],
        backward: Float[Array | np.ndarray, "inputs outputs"] | None = None,
    ):
        require_shape("weights", weights, (None, None))
        self._set(weights, bias, backward)

    @property
    def operator(self) -> Callable[[Any, Any], Any]:
        """The product x W."""
        return _flattened_product


@checked
class FeedbackConvolution(FeedbackLayer):
    """A convolution z = K ∗ x + b whose errors are sent back by the transposed convolution with another kernel B.

    The image is padded with zeros, which preserves its size if the stride is one.

    Attributes:
        weights: K, shape (side, side, input channels, output channels), with an odd side.
        bias: b, shape (output channels,).
        backward: B, of the shape of K, or None for exact errors.
        stride: Stride in pixels.

    Args:
        weights: K.
        bias: b.
        backward: B, or None.
        stride: Stride in pixels.
        groups: Number of groups of channels. Learning rules of feedback weights are defined for one group only.

    Raises:
        InputError: If the shapes do not match, the side is even, or the channels are grouped.

    References:
        Kunin et al., arXiv:2003.01513.

    Example:
        >>> kernel = np.ones((3, 3, 1, 2))
        >>> FeedbackConvolution(kernel, np.zeros(2), -kernel, stride=2)(np.ones((5, 8, 8, 1))).shape
        (5, 4, 4, 2)
    """

    stride: int = eqx.field(static=True)

    def __init__(
        self,
        weights: Float[Array | np.ndarray, "side side entering leaving"],
        bias: Float[Array | np.ndarray, " leaving"],
        backward: Float[Array | np.ndarray, "side side entering leaving"] | None = None,
        *,
        stride: PositiveInt = 1,
        groups: PositiveInt = 1,
    ):
        require_shape("weights", weights, (None, None, None, None))
        side = weights.shape[0]
        require(
            side % 2 == 1 and weights.shape[1] == side,
            f"weights has kernels of {side} × {weights.shape[1]} pixels",
            argument="weights",
            value=weights.shape,
            remedy="give square kernels with an odd side length",
        )
        require(
            groups == 1,
            f"groups is {groups}, but the learning rules of feedback weights are not defined for grouped kernels",
            argument="groups",
            value=groups,
            remedy="use one group, or one layer for each group",
        )
        self._set(weights, bias, backward)
        self.stride = stride

    @property
    def operator(self) -> Callable[[Any, Any], Any]:
        """The convolution K ∗ x."""
        return functools.partial(convolved, stride=self.stride)


def _flattened_product(x: Any, weights: Any) -> Any:
    return x.reshape(len(x), -1) @ weights
