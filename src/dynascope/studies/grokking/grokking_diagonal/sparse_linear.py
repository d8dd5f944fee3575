"""Samples of a sparse linear function, and the squared loss with weight decay."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dynascope.protocols import Network

__all__ = ["DecayedLoss", "SparseLinear", "sparse_linear"]


class SparseLinear(NamedTuple):
    """Samples of a sparse linear function and its coefficients.

    Attributes:
        inputs: Gaussian inputs, shape (n, d).
        targets: Targets, shape (n,).
        covariance: Covariance of the inputs, shape (d, d).
        coefficients: ±1/√k for the k relevant inputs, shape (d,).
    """

    inputs: Float[np.ndarray, "n d"]
    targets: Float[np.ndarray, " n"]
    covariance: Float[np.ndarray, "d d"]
    coefficients: Float[np.ndarray, " d"]


class DecayedLoss(eqx.Module):
    """The loss ½E‖f(x) − y‖² + ½λ‖θ‖² of a network with one output; λ is an array, so all λ share one program.

    Example:
        >>> from dynascope.protocols import Learnable
        >>> isinstance(DecayedLoss(np.eye(2), np.ones(2), np.array(0.1)), Learnable)
        True
    """

    inputs: Any
    targets: Any
    weight_decay: Any

    def loss(self, network: Network) -> Any:
        """The loss, with weight decay on all weights."""
        missed = network(self.inputs)[:, 0] - self.targets
        size = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(network))
        return (jnp.mean(missed**2) + self.weight_decay * size) / 2

    def attributes(self) -> dict[str, Any]:
        """Attributes of the record."""
        return {"task": "a sparse linear function"}


def sparse_linear(samples: int, inputs: int, relevant: int, seed: int) -> SparseLinear:
    """Draw independent Gaussian inputs and a target of unit variance that depends on a few of the inputs.

    Example:
        >>> data = sparse_linear(samples=3, inputs=6, relevant=2, seed=0)
        >>> int(np.count_nonzero(data.coefficients)), data.inputs.shape, round(float(np.sum(data.coefficients**2)), 12)
        (2, (3, 6), 1.0)
    """
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(samples, inputs))
    coefficients = np.zeros(inputs)
    coefficients[draw.permutation(inputs)[:relevant]] = draw.choice([-1.0, 1.0], relevant)
    coefficients /= np.sqrt(relevant)
    return SparseLinear(x, x @ coefficients, np.eye(inputs), coefficients)
