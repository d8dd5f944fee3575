"""Layer normalisation, with or without learned gain and shift."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

__all__ = ["LayerNormalisation"]

_SMALLEST_VARIANCE = 1e-5  # added to the variance


class LayerNormalisation(eqx.Module):
    """Layer normalisation of the last axis: z = γ (h − mean)/√(variance + 1e-5) + β.

    Attributes:
        gain: γ, shape (width,); None for one.
        shift: β, shape (width,); None for zero.

    Args:
        width: Length of the last axis.
        gain: Whether γ is learned.
        shift: Whether β is learned.

    References:
        J. L. Ba, J. R. Kiros and G. E. Hinton, Layer Normalization, arXiv:1607.06450; 1e-5 is the constant of PyTorch.
    """

    gain: Float[Array | np.ndarray, " width"] | None
    shift: Float[Array | np.ndarray, " width"] | None

    def __init__(self, width: int, *, gain: bool = False, shift: bool = False):
        self.gain = np.ones(width) if gain else None
        self.shift = np.zeros(width) if shift else None

    def __call__(self, h: Float[Array, "... width"]) -> Float[Array, "... width"]:
        """Compute the normalised vectors."""
        centred = h - jnp.mean(h, axis=-1, keepdims=True)
        z = centred / jnp.sqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + _SMALLEST_VARIANCE)
        z = z if self.gain is None else z * self.gain
        return z if self.shift is None else z + self.shift
