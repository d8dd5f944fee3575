"""In-context linear regression for linear attention, with the exact loss over random prompts."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.protocols import Network
from dynascope.tasks.task import Task
from dynascope.validation import require, require_at_least, require_covariance

__all__ = ["InContextRegression"]


class InContextRegression(eqx.Module):
    """In-context linear regression with the exact expected loss of linear attention.

    A prompt has N labelled Gaussian examples, y_n = β·x_n, and a query. Linear attention predicts βᵀ Σ̂ P x_query with
    Σ̂ = 1/N Σ_n x_n x_nᵀ. With C = E Σ̂² = (1 + 1/N) Σ² + tr(Σ)/N Σ, the loss ½ E(f − y)² is

        L(P) = ½ [tr Σ − 2 tr(Σ² P) + tr(C P Σ Pᵀ)] = ½ ‖(I − ΣP) Σ^½‖² + (‖ΣP Σ^½‖² + tr Σ ‖Σ^½ P Σ^½‖²)/(2N).

    Attributes:
        covariance: Σ, shape (d, d).
        root: Σ^½, shape (d, d).
        context_length: Number N ≥ 1 of examples, possibly infinite or fractional.
        name: Short name, used in file names and titles.
        feature_names: Names of the d inputs.
        image_shape: (height, width) if the inputs are an image, else None.
        origin: Sentences about the origin of the covariance.

    Args:
        covariance: Σ, shape (d, d), or the d variances of independent inputs.
        context_length: Number N ≥ 1 of examples in a prompt.
        name: Short name.
        feature_names: Names of the inputs; empty for "x1", "x2", ….
        image_shape: (height, width) if the inputs are an image.
        origin: Sentences about the origin of the covariance.

    Raises:
        InputError: If N is below one, or if the covariance is not symmetric, positive semi-definite and non-zero.

    Source: arXiv:2501.16265; C is the second Wishart moment.

    Example:
        >>> from dynascope.networks.linear_attention import LinearAttention
        >>> task = InContextRegression([1.0, 0.7, 0.4], 20)
        >>> round(float(task.loss(LinearAttention(3, 4, scale=1e-9))), 6)
        1.05
    """

    covariance: Float[Array | np.ndarray, "d d"]
    root: Float[Array | np.ndarray, "d d"]
    context_length: float = eqx.field(static=True)
    name: str = eqx.field(static=True)
    feature_names: tuple[str, ...] = eqx.field(static=True)
    image_shape: tuple[int, int] | None = eqx.field(static=True)
    origin: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        covariance: ArrayLike,
        context_length: float,
        *,
        name: str = "in-context regression",
        feature_names: tuple[str, ...] = (),
        image_shape: tuple[int, int] | None = None,
        origin: tuple[str, ...] = (),
    ):
        self.covariance, self.root = _with_root(covariance)
        self.name, self.image_shape, self.origin = name, image_shape, tuple(origin)
        self.feature_names = feature_names or tuple(f"x{i + 1}" for i in range(len(self.covariance)))
        self.context_length = require_at_least("context_length", context_length, 1)

    @classmethod
    def on_inputs_of(cls, task: Task, context_length: float) -> InContextRegression:
        """Make a task with Gaussian inputs that have the same second moment as the inputs of a given task.

        Example:
            >>> task = Task([[1.0, 0.0], [0.0, 2.0]], [[1.0], [0.0]], name="mine")
            >>> InContextRegression.on_inputs_of(task, 20).covariance.tolist()
            [[0.5, 0.0], [0.0, 2.0]]
        """
        return cls(
            task.input_moment,
            context_length,
            name=f"in-context regression on {task.name}",
            feature_names=task.feature_names,
            image_shape=task.image_shape,
            origin=(*task.description, "Only the second moment of the inputs is used, not the targets."),
        )

    @property
    def description(self) -> tuple[str, ...]:
        """Sentences about the distribution."""
        examples = "infinitely many" if math.isinf(self.context_length) else f"{self.context_length:g}"
        return (
            *self.origin,
            f"Prompts of {examples} labelled Gaussian examples and a query, with an independent regression vector.",
            "The loss is the exact expectation over prompts.",
        )

    @property
    def target_names(self) -> tuple[str, ...]:
        """Name of the output."""
        return ("y1",)

    @property
    def context_moment(self) -> Float[Array | np.ndarray, "d d"]:
        """C = E Σ̂² = (1 + 1/N) Σ² + tr(Σ)/N Σ."""
        square = self.covariance @ self.covariance
        return square + (square + self.covariance.trace() * self.covariance) / self.context_length

    def loss(self, network: Network) -> Float[Array, ""]:
        """Compute L = ½ E(f − y)² for a network with the attribute `matrix`, P."""
        covariance, root = jnp.asarray(self.covariance), jnp.asarray(self.root)
        matrix: Any = getattr(network, "matrix", None)
        require(
            np.shape(matrix) == covariance.shape,
            f"the matrix of the network has shape {np.shape(matrix)}, but the task has input dimension "
            f"{len(covariance)}",
            argument="network",
            value=np.shape(matrix),
            remedy=f"pass a linear attention network with input dimension {len(covariance)}",
        )
        # A sum of squares stays non-negative despite rounding.
        queried = matrix @ root
        explained = covariance @ queried
        noise = jnp.sum(explained**2) + jnp.trace(covariance) * jnp.sum((root @ queried) ** 2)
        return (jnp.sum((root - explained) ** 2) + noise / self.context_length) / 2

    def attributes(self) -> dict[str, Any]:
        """Attributes that describe the task in records."""
        return {
            "task": self.name,
            "description": list(self.description),
            "input_dimension": len(self.covariance),
            "output_dimension": 1,
            "image_shape": self.image_shape,
        }


def _with_root(covariance: ArrayLike) -> tuple[Float[np.ndarray, "d d"], Float[np.ndarray, "d d"]]:
    """Σ and its symmetric square root."""
    matrix = require_covariance("covariance", covariance)
    variances, axes = np.linalg.eigh(matrix)
    return matrix, (axes * np.sqrt(np.maximum(variances, 0.0))) @ axes.T
