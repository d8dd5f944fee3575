"""Batch normalisation as a pure function, which returns its updated running statistics."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, PyTree

from dynascope.validation import checked, holds, require
from dynascope.validation.bounded import NonNegativeFloat, PositiveInt

__all__ = ["BatchNormalisation", "RunningStatistics", "running_statistics", "trained_weights"]

_NEWEST = 0.1  # weight of the newest batch in the running statistics


class RunningStatistics(eqx.Module):
    """Running averages over training batches, which are part of a network but are not trained.

    Attributes:
        mean: Running mean, shape (channels,).
        variance: Running variance, shape (channels,).
    """

    mean: Float[Array | np.ndarray, " channels"]
    variance: Float[Array | np.ndarray, " channels"]


class BatchNormalisation(eqx.Module):
    """Batch normalisation of the last axis.

        z = γ (x − μ)/√(σ² + ε) + β

    In training, μ and σ² are the mean and variance over the batch and its pixels. The running statistics move a tenth
    of the way towards μ and the unbiased variance. In evaluation, μ and σ² are the running statistics, so the output of
    a sample does not depend on the rest of the batch.

    With ε = 0, multiplying a channel by a positive number does not change the training outputs, apart from rounding
    errors. A constant channel then raises an error.

    Attributes:
        gain: γ, shape (channels,), initially one.
        shift: β, shape (channels,), initially zero.
        statistics: Running mean and variance, initially zero and one; no gradients flow through them.
        epsilon: ε, a static setting.

    Args:
        channels: Number of channels.
        epsilon: ε ≥ 0.

    Raises:
        InputError: If the number of channels is not positive, or if ε is negative or not finite.

    References:
        S. Ioffe and C. Szegedy, Batch Normalization, arXiv:1502.03167; the constants are those of PyTorch.

    Example:
        >>> layer = BatchNormalisation(2)
        >>> outputs, layer = layer.apply(jnp.array([[1.0, 5.0], [3.0, 5.0]]), training=True)
        >>> outputs.round(4).tolist(), np.asarray(layer.statistics.mean).round(4)
        ([[-1.0, 0.0], [1.0, 0.0]], array([0.2, 0.5], dtype=float32))
    """

    gain: Float[Array | np.ndarray, " channels"]
    shift: Float[Array | np.ndarray, " channels"]
    statistics: RunningStatistics
    epsilon: float = eqx.field(static=True)

    @checked
    def __init__(self, channels: PositiveInt, *, epsilon: NonNegativeFloat = 1e-5):
        self.gain, self.shift = np.ones(channels), np.zeros(channels)
        self.statistics = RunningStatistics(np.zeros(channels), np.ones(channels))
        self.epsilon = float(epsilon)

    def apply(
        self, x: Float[Array, "... channels"], *, training: bool
    ) -> tuple[Float[Array, "... channels"], BatchNormalisation]:
        """Compute the outputs, and the layer with updated running statistics; evaluation returns the layer unchanged.

        Raises:
            InputError: If a training batch has a single value per channel, or if both ε and the variance of a channel
                are zero. The variance is the batch variance in training and the running variance in evaluation. If the
                values are traced by JAX, the outputs of the channel are NaN instead.
        """
        if not training:
            mean, variance = jax.lax.stop_gradient((self.statistics.mean, self.statistics.variance))
            return self._normalised(x, mean, variance), self
        axes = tuple(range(x.ndim - 1))
        count = x.size // x.shape[-1]
        require(
            count > 1,
            "x contains only one value per channel",
            argument="x",
            value=x.shape,
            remedy="give at least two samples, or larger images",
        )
        mean, variance = jnp.mean(x, axis=axes), jnp.var(x, axis=axes)
        if self.epsilon == 0:
            # Rounding of the mean gives constant channels a tiny variance; set it to zero.
            variance = jnp.where(jnp.max(x, axis=axes) == jnp.min(x, axis=axes), 0, variance)
        statistics = jax.tree.map(
            lambda old, new: (1 - _NEWEST) * old + _NEWEST * jax.lax.stop_gradient(new),
            self.statistics,
            RunningStatistics(mean, variance * (count / (count - 1))),
        )
        layer = eqx.tree_at(lambda each: each.statistics, self, statistics)
        return self._normalised(x, mean, variance), layer

    def _normalised(self, x: Any, mean: Any, variance: Any) -> Any:
        deviation = jnp.sqrt(variance + self.epsilon)
        # ε underflows to zero in this precision.
        if self.epsilon < jnp.finfo(deviation.dtype).tiny:
            # Test for zero only, since NaN inputs are not caused by the normalisation.
            vanishes = deviation == 0
            require(
                holds(~jnp.any(vanishes)),
                f"epsilon is {self.epsilon}, but the variance of a channel is zero",
                argument="epsilon",
                value=self.epsilon,
                remedy="choose a positive epsilon, or give inputs without constant channels",
            )
            deviation = jnp.where(vanishes, jnp.nan, deviation)
        return (x - mean) * (self.gain / deviation) + self.shift


def trained_weights(network: PyTree) -> PyTree:
    """Filter the trainable arrays of a network; all other leaves, such as running statistics, become None.

    `equinox.combine` merges the result with the remaining leaves.

    Example:
        >>> weights = trained_weights(BatchNormalisation(3))
        >>> weights.gain.shape, weights.statistics.mean
        ((3,), None)
    """
    return _arrays(network, statistics=False)


def running_statistics(network: PyTree) -> PyTree:
    """Filter the running statistics of a network; all other leaves become None.

    Example:
        >>> carried = running_statistics(BatchNormalisation(3))
        >>> carried.gain, carried.statistics.mean.shape
        (None, (3,))
    """
    return _arrays(network, statistics=True)


def _arrays(network: PyTree, *, statistics: bool) -> PyTree:
    """Filter the floating-point arrays of a network that are running statistics, or those that are not."""

    def kept(part: Any) -> Any:
        return eqx.filter(part, isinstance(part, RunningStatistics) == statistics and eqx.is_inexact_array)

    return jax.tree.map(kept, network, is_leaf=lambda part: isinstance(part, RunningStatistics))
