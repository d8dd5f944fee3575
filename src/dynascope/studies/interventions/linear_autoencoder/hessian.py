"""The Hessian of an autoencoder's loss, by automatic differentiation."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from dynascope.networks import DeepLinear

__all__ = ["hessian_spectrum"]


def hessian_spectrum(task: Any, encoder: np.ndarray, decoder: np.ndarray) -> np.ndarray:
    """Eigenvalues of the Hessian of a loss at given layers, in increasing order.

    Args:
        task: The loss, a module with a method `loss`.
        encoder: A, shape (inputs, latents).
        decoder: B, shape (latents, inputs).
    """
    frame = DeepLinear((*encoder.shape, len(encoder)))
    at = eqx.tree_at(lambda network: network.weights, frame, (encoder, decoder))
    with jax.enable_x64(True):
        weights, unravel = ravel_pytree(at)
        return np.linalg.eigvalsh(_hessian(task, weights, unravel))


@eqx.filter_jit
def _hessian(task: Any, weights: Any, unravel: Any) -> Any:
    return jax.hessian(lambda flat: task.loss(unravel(flat)))(weights)
