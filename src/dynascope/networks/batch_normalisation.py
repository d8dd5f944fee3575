"""Batch normalisation as a pure function: the running statistics come back with the outputs."""

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
    """Means over the batches of training, which are part of a network and no weights of it.

    Attributes:
        mean: Array (channels,).
        variance: Array (channels,).
    """

    mean: Float[Array | np.ndarray, " channels"]
    variance: Float[Array | np.ndarray, " channels"]


class BatchNormalisation(eqx.Module):
    """z = γ (x − μ)/√(σ² + ε) + β for every channel, the last axis.

    In training μ and σ² are the mean and the variance over the batch and its pixels, and the running statistics move a
    tenth of the way towards them, with the unbiased variance. In evaluation they are the running statistics, so that a
    sample does not depend on the others.

    With ε = 0 the outputs of training do not change when a channel is multiplied by a positive number, but for
    rounding. A channel that is constant has no normalisation then.

    Attributes:
        gain: γ, shape (channels,), one at the start.
        shift: β, shape (channels,), zero at the start.
        statistics: Running mean and variance, zero and one at the start; no gradient passes through them.
        epsilon: ε, a setting and no weight.

    Args:
        channels: Their number.
        epsilon: ε ≥ 0.

    Raises:
        InputError: The number of channels is not positive, or ε is negative or not finite.

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
        """Outputs, and the layer with its new running statistics, or itself in evaluation.

        Raises:
            InputError: A batch in training has a single value for each channel, and so no variance; or ε is zero, and
                so is the variance of a channel, that of the batch in training and the running one in evaluation. Where
                JAX traces the values, that channel is NaN.
        """
        if not training:
            mean, variance = jax.lax.stop_gradient((self.statistics.mean, self.statistics.variance))
            return self._normalised(x, mean, variance), self
        axes = tuple(range(x.ndim - 1))
        count = x.size // x.shape[-1]
        require(
            count > 1,
            "a batch in training has one value for each channel",
            argument="x",
            value=x.shape,
            remedy="give at least two samples, or larger images",
        )
        mean, variance = jnp.mean(x, axis=axes), jnp.var(x, axis=axes)
        if self.epsilon == 0:
            # The mean of equal values is rounded, which gives them a variance that nothing should be divided by.
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
        # Zero in this precision.
        if self.epsilon < jnp.finfo(deviation.dtype).tiny:
            # Only a zero, since what is NaN already is not made so by the normalisation.
            vanishes = deviation == 0
            require(
                holds(~jnp.any(vanishes)),
                f"epsilon is {self.epsilon} and the variance of a channel is zero",
                argument="epsilon",
                value=self.epsilon,
                remedy="choose a positive epsilon, or give inputs that vary in every channel",
            )
            deviation = jnp.where(vanishes, jnp.nan, deviation)
        return (x - mean) * (self.gain / deviation) + self.shift


def trained_weights(network: PyTree) -> PyTree:
    """The network with None in the place of all that is no weight: settings, and running statistics.

    `equinox.combine` puts it together again with the rest.

    Example:
        >>> weights = trained_weights(BatchNormalisation(3))
        >>> weights.gain.shape, weights.statistics.mean
        ((3,), None)
    """
    return _arrays(network, statistics=False)


def running_statistics(network: PyTree) -> PyTree:
    """The network with None in the place of all that is no running statistic.

    Example:
        >>> carried = running_statistics(BatchNormalisation(3))
        >>> carried.gain, carried.statistics.mean.shape
        (None, (3,))
    """
    return _arrays(network, statistics=True)


def _arrays(network: PyTree, *, statistics: bool) -> PyTree:
    """The floating-point arrays that are running statistics, or those that are not, with None for all else."""

    def kept(part: Any) -> Any:
        return eqx.filter(part, isinstance(part, RunningStatistics) == statistics and eqx.is_inexact_array)

    return jax.tree.map(kept, network, is_leaf=lambda part: isinstance(part, RunningStatistics))
