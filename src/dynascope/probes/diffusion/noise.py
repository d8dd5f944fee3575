"""The noise of batches: its covariance from gradients of batches, whole or along directions."""

from __future__ import annotations

import dataclasses
from typing import Any

from dynascope.results.named_tuples import short_repr
from dynascope.validation import array_namespace, checked, require, require_axes, require_finite_values
from dynascope.validation.bounded_scalars import PositiveInt

__all__ = ["GradientNoise", "gradient_noise"]


@dataclasses.dataclass(frozen=True)
class GradientNoise:
    """Covariance of the gradients of single samples, estimated from batches; those of several calls add up.

    Attributes:
        total: Sum over batches of S_b (g_b − g)(g_b − g)ᵀ along the directions, each squared only, shape (k,).
        total_trace: Sum over batches of S_b ‖g_b − g‖².
        total_squares: Sum over batches of the squares of what `total` sums, shape (k,), for the error.
        batches: Number of batches.
    """

    total: Any
    total_trace: Any
    total_squares: Any
    batches: PositiveInt

    __repr__ = short_repr

    def __add__(self, other: GradientNoise) -> GradientNoise:
        """The noise of the batches of both, at the same weights and along the same directions."""
        require(
            self.total.shape == other.total.shape,
            "the two were measured along different directions",
            argument="other",
            value=tuple(other.total.shape),
            remedy="add up batches of one checkpoint",
        )
        return GradientNoise(
            self.total + other.total,
            self.total_trace + other.total_trace,
            self.total_squares + other.total_squares,
            self.batches + other.batches,
        )

    @property
    def variance(self) -> Any:
        """S = qᵀ Σ q of each direction, the variance over samples of the gradient along it, shape (k,)."""
        return self.total / self.batches

    @property
    def trace(self) -> Any:
        """Tr Σ, over all directions there are."""
        return self.total_trace / self.batches

    @property
    def error(self) -> Any:
        """The standard error of the variances, shape (k,); ∞ of a single batch."""
        spread = self.total_squares / self.batches - self.variance**2
        xp = array_namespace(spread)
        return (
            (xp.where(spread > 0, spread, xp.zeros_like(spread)) / max(self.batches - 1, 0.0)) ** 0.5
            if (self.batches > 1)
            else xp.full_like(spread, float("inf"))
        )


@checked
def gradient_noise(
    batch_gradients: Any,
    full_gradient: Any,
    *,
    batch_size: PositiveInt,
    samples: PositiveInt | None = None,
    directions: Any = None,
) -> GradientNoise:
    """Σ = S E (g_B − g)(g_B − g)ᵀ, the covariance over samples of their gradients, from gradients g_B of batches of S.

    Batches without a sample twice have less noise, by (N − S)/(N − 1), and Σ is what it is divided by that. Only what
    is asked for is formed: variances along directions, and the trace. The estimate has no bias where g is that of all
    samples. Cost: 2bdk operations for b batches and k directions, in memory for bd numbers.

    Args:
        batch_gradients: g_B of each batch, shape (b, d).
        full_gradient: g of all samples, shape (d,).
        batch_size: S, samples in a batch.
        samples: N, where a batch has no sample twice; or None.
        directions: Unit vectors q as rows, shape (k, d), such as those of `top_curvatures`; None for the axes.

    Raises:
        InputError: Shapes that do not fit, values that are not finite, or a batch of all samples, which has no noise.

    Example:
        >>> import numpy as np
        >>> noise = gradient_noise(np.array([[1.0, 2.0], [3.0, 2.0]]), np.array([2.0, 2.0]), batch_size=4)
        >>> print(noise.variance, noise.trace)
        [4. 0.] 4.0
    """
    count, size = require_axes("batch_gradients", batch_gradients, 2)
    rows = {"batch_gradients": batch_gradients, "full_gradient": full_gradient}
    rows |= {} if directions is None else {"directions": directions}
    for name, each in rows.items():
        require_finite_values(name, each, floating=True)
    require(
        require_axes("full_gradient", full_gradient, 1) == (size,),
        f"full_gradient has shape {tuple(full_gradient.shape)}, and batch_gradients {(count, size)}",
        argument="full_gradient",
        value=tuple(full_gradient.shape),
        remedy="give the gradient by the same weights",
    )
    require(
        samples is None or batch_size < samples,
        f"batch_size is {batch_size}, of {samples} samples",
        argument="batch_size",
        value=batch_size,
        remedy="choose batches of fewer samples than there are",
    )
    scale = batch_size * (1.0 if samples is None else (samples - 1) / (samples - batch_size))
    xp = array_namespace(batch_gradients=batch_gradients, full_gradient=full_gradient)
    noise = (batch_gradients - full_gradient[None, :]) * scale**0.5
    along = noise
    if directions is not None:
        require(
            require_axes("directions", directions, 2)[1] == size,
            f"directions has shape {tuple(directions.shape)}, and gradients have {size} entries",
            argument="directions",
            value=tuple(directions.shape),
            remedy="give one row for each direction",
        )
        along = noise @ directions.T
    squares = along * along
    return GradientNoise(xp.sum(squares, axis=0), xp.sum(noise * noise), xp.sum(squares * squares, axis=0), count)
