"""Gradient noise: the covariance of single-sample gradients along directions, and its trace, estimated from batches."""

from __future__ import annotations

import dataclasses
from typing import Any

from dynascope.results.named_tuples import short_repr
from dynascope.validation import array_namespace, checked, require, require_axes, require_finite_values
from dynascope.validation.bounded_scalars import PositiveInt

__all__ = ["GradientNoise", "gradient_noise"]


@dataclasses.dataclass(frozen=True)
class GradientNoise:
    """Covariance of the gradients of single samples, estimated from batches; estimates of several calls can be added.

    Attributes:
        total: Sum over batches of S_b (qᵀ(g_b − g))² for each direction q, shape (k,).
        total_trace: Sum over batches of S_b ‖g_b − g‖².
        total_squares: Sum over batches of the squared summands of `total`, shape (k,), for the standard error.
        batches: Number of batches.
    """

    total: Any
    total_trace: Any
    total_squares: Any
    batches: PositiveInt

    __repr__ = short_repr

    def __add__(self, other: GradientNoise) -> GradientNoise:
        """Add the noise of other batches at the same weights and along the same directions."""
        require(
            self.total.shape == other.total.shape,
            "the two estimates have different numbers of directions",
            argument="other",
            value=tuple(other.total.shape),
            remedy="add estimates from the same checkpoint and along the same directions",
        )
        return GradientNoise(
            self.total + other.total,
            self.total_trace + other.total_trace,
            self.total_squares + other.total_squares,
            self.batches + other.batches,
        )

    @property
    def variance(self) -> Any:
        """The variance over samples of the gradient along each direction, S = qᵀ Σ q, shape (k,)."""
        return self.total / self.batches

    @property
    def trace(self) -> Any:
        """Tr Σ over all weights."""
        return self.total_trace / self.batches

    @property
    def error(self) -> Any:
        """The standard error of the variances, shape (k,); ∞ for a single batch."""
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
    """Estimate the covariance Σ of single-sample gradients from the gradients g_B of batches of S samples.

        Σ = S E (g_B − g)(g_B − g)ᵀ

    Batches drawn without replacement have less noise, by the factor (N − S)/(N − 1); pass `samples` to correct for this
    factor. Only the variances along directions and the trace are computed. The estimate is unbiased if g is the
    gradient over all samples.

    Cost: 2bdk operations for b batches and k directions, and memory for bd numbers.

    Args:
        batch_gradients: g_B of each batch, shape (b, d).
        full_gradient: g over all samples, shape (d,).
        batch_size: S, the number of samples in a batch.
        samples: N, the number of samples, if batches are drawn without replacement; otherwise None.
        directions: Unit vectors q as rows, shape (k, d), e.g. from `top_curvatures`; None for the coordinate axes.

    Raises:
        InputError: If shapes do not match, values are not finite, or a batch contains all samples and so has no noise.

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
        f"full_gradient has shape {tuple(full_gradient.shape)}, but batch_gradients has shape {(count, size)}",
        argument="full_gradient",
        value=tuple(full_gradient.shape),
        remedy="give the gradient with respect to the same weights",
    )
    require(
        samples is None or batch_size < samples,
        f"batch_size is {batch_size}, but there are {samples} samples",
        argument="batch_size",
        value=batch_size,
        remedy="choose a batch size below the number of samples",
    )
    scale = batch_size * (1.0 if samples is None else (samples - 1) / (samples - batch_size))
    xp = array_namespace(batch_gradients=batch_gradients, full_gradient=full_gradient)
    noise = (batch_gradients - full_gradient[None, :]) * scale**0.5
    along = noise
    if directions is not None:
        require(
            require_axes("directions", directions, 2)[1] == size,
            f"directions has shape {tuple(directions.shape)}, but each gradient has {size} entries",
            argument="directions",
            value=tuple(directions.shape),
            remedy="give each direction as a row with one entry per weight",
        )
        along = noise @ directions.T
    squares = along * along
    return GradientNoise(xp.sum(squares, axis=0), xp.sum(noise * noise), xp.sum(squares * squares, axis=0), count)
