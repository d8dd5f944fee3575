"""Exact mean and covariance of the weights under SGD with momentum on finite data, step by step."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.theory.noise.linear_recursion import moments_step_by_step, whole_steps
from dynascope.theory.noise.lyapunov import stationary_covariance
from dynascope.theory.noise.quadratic_loss import checked_regression, noisy_steps, quadratic_loss
from dynascope.theory.sgd import SGD
from dynascope.validation import require, require_array
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers

__all__ = ["WeightMoments", "finite_data_moments", "finite_data_stationary_moments", "initial_offset", "weight_moments"]

_MAX_ITERATIONS, _CONVERGED = 20_000, 1e-14  # iterations, and the relative change at convergence
_covers = functools.partial(
    covers,
    network="linear regression, one output",
    data="any, in independent batches",
    start="any",
    reference="arXiv:2107.09133",
)


class WeightMoments(NamedTuple):
    """Means and covariances of weights θ and velocities v; the step axes, if any, come first.

    Attributes:
        position: E θ, shape (..., d).
        velocity: E v, with v the last displacement divided by the learning rate, shape (..., d).
        position_covariance: Cov(θ, θ), shape (..., d, d).
        covariance: Cov(θ, v), shape (..., d, d).
        velocity_covariance: Cov(v, v), shape (..., d, d).
        loss: ½ E(xᵀθ − y)², the expected loss without weight decay, shape (...). The gradient noise grows with the
            loss, and is approximately constant only while the loss is close to its value at the mean of the stationary
            distribution.
    """

    position: Float[np.ndarray, "*steps d"]
    velocity: Float[np.ndarray, "*steps d"]
    position_covariance: Float[np.ndarray, "*steps d d"]
    covariance: Float[np.ndarray, "*steps d d"]
    velocity_covariance: Float[np.ndarray, "*steps d d"]
    loss: Float[np.ndarray, "*steps"]

    __repr__ = short_repr


@_covers(gives="mean and covariance of the weights and velocity under SGD on given data after any number of steps")
def finite_data_moments(
    steps: NonNegativeNumbers,
    inputs: FiniteNumbers,
    targets: FiniteNumbers,
    sgd: SGD,
    *,
    start: FiniteNumbers | None = None,
    velocity: FiniteNumbers | None = None,
) -> WeightMoments:
    """Exact mean and covariance of the weights under SGD on a finite data set, with weight-dependent gradient noise.

        Cov ← M Cov Mᵀ + N Σ̄/S Nᵀ,   m ← M m   for v ← β v − (g + λθ), θ ← θ + η v,
        Σ̄ = (1/N) Σ_i x_i x_iᵀ E(x_iᵀθ − y_i)² − E[∇L ∇Lᵀ],
        E(x_iᵀθ − y_i)² = (x_iᵀE θ − y_i)² + x_iᵀ Cov(θ) x_i

    Here g is the mean gradient of a batch and m the mean of a = θ − μ. Σ̄ is the covariance of the per-sample
    gradients, averaged over the distribution of the weights. `discrete_moments`, whose noise is constant, is the limit
    of small steps near μ, where Σ̄ = Σ(μ). The formula makes no assumption about the residuals.

    Args:
        steps: Numbers of steps k ≥ 0, any shape; the time grows as k (N d² + d³), and the memory as d² per requested
            step.
        inputs: X, shape (N, d).
        targets: y, shape (N,) or (N, 1).
        sgd: η, β, λ and S, with η (ρ + λ) < 2(1 + β) for all eigenvalues ρ of XᵀX/N; also N if each batch is drawn
            without replacement. Successive batches are independent, unlike the batches of an epoch.
        start: θ_0, shape (d,); zero by default.
        velocity: v_0, shape (d,); zero by default.

    Raises:
        InputError: If a setting is out of range, the steps diverge, the shapes do not match, or the result overflows
            because the second moment grows.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, without its
        approximations.

    Example:
        >>> found = finite_data_moments(1, [[1.0], [1.0]], [0.0, 2.0], SGD(0.5))
        >>> print(found.position, found.position_covariance)
        [0.5] [[0.25]]
    """
    k = whole_steps("steps", steps)
    data = _regression(inputs, targets, sgd)
    initial = initial_offset(data.centre, start, velocity)
    with np.errstate(all="ignore"):
        found = moments_step_by_step(k.ravel(), data.steep, initial, data.rate, data.momentum, data.noise_of_step)
    return weight_moments(*found, data.centre, data.loss, k.shape)


@_covers(gives="stationary covariance of the weights and velocity under SGD on given data")
def finite_data_stationary_moments(inputs: FiniteNumbers, targets: FiniteNumbers, sgd: SGD) -> WeightMoments:
    """Stationary covariance of the weights under SGD on a finite data set, the limit of `finite_data_moments`.

        Cov = M Cov Mᵀ + N Σ̄(Cov)/S Nᵀ,   solved by fixed-point iteration over Σ̄

    Args:
        inputs: X, shape (N, d).
        targets: y, shape (N,) or (N, 1).
        sgd: η, β, λ and S, with η (ρ + λ) < 2(1 + β) for all eigenvalues ρ of XᵀX/N, and λ > 0 if XᵀX is singular; also
            N if each batch is drawn without replacement.

    Returns:
        Moments without a step axis; the mean weights are μ and the mean velocity is zero.

    Raises:
        InputError: If a setting is out of range, the mean or the second moment diverges, or the shapes do not match.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, without its
        approximations.

    Example:
        >>> found = finite_data_stationary_moments([[1.0], [1.0]], [0.0, 2.0], SGD(0.5))
        >>> print(found.position, found.position_covariance.round(6))
        [1.] [[0.333333]]
    """
    data = _regression(inputs, targets, sgd)
    zero, steps = np.zeros_like(data.centre), sgd.without_batches
    spread, before = np.zeros_like(data.hessian), np.inf
    for count in range(_MAX_ITERATIONS):
        step_noise = data.noise_of_step(zero, spread)
        if not np.abs(step_noise).max() > 0:  # the minimum interpolates the data, and the noise vanishes there
            return _stationary_moments(data, spread, spread, spread)
        found = stationary_covariance(data.hessian, step_noise, steps)
        change, size = float(np.abs(found.position - spread).max()), float(np.abs(found.position).max())
        spread = found.position
        if change <= _CONVERGED * size:
            return _stationary_moments(data, found.position, found.cross, found.velocity)
        # The noise increases with the covariance, so the increments either decrease eventually or increase forever.
        require(
            np.isfinite(size) and (count < 100 or change < before),
            "the second moment of the weights diverges for this learning rate and batch size",
            argument="learning_rate",
            value=sgd.learning_rate,
            remedy="use a smaller learning rate or larger batches",
        )
        before = change
    return _stationary_moments(data, found.position, found.cross, found.velocity)


@dataclasses.dataclass(frozen=True)
class _Regression:
    """Linear regression with validated SGD settings."""

    inputs: np.ndarray
    residuals: np.ndarray  # at the centre μ
    centre: np.ndarray
    hessian: np.ndarray
    decay: float
    rate: float
    momentum: float
    share: float

    @property
    def steep(self) -> np.ndarray:
        return self.hessian + self.decay * np.eye(len(self.hessian))

    def noise_of_step(self, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """Return the noise covariance Σ̄/S of one step, for a = θ − μ with the given mean and covariance."""
        weighted_inputs = self.inputs.T * self._squares(mean, spread)
        slope = self.hessian @ mean - self.decay * self.centre
        expected = self.hessian @ spread @ self.hessian + np.outer(slope, slope)
        noise = weighted_inputs @ self.inputs / len(self.inputs) - expected
        return self.share * (noise + noise.T) / 2

    def loss(self, mean: np.ndarray, spread: np.ndarray) -> float:
        return float(self._squares(mean, spread).mean() / 2)

    def _squares(self, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """Return the expected squared residual E(x_iᵀθ − y_i)² of each sample."""
        return (self.inputs @ mean + self.residuals) ** 2 + np.sum((self.inputs @ spread) * self.inputs, axis=1)


def _regression(inputs: ArrayLike, targets: ArrayLike, sgd: SGD) -> _Regression:
    loss = quadratic_loss(inputs, targets, weight_decay=sgd.weight_decay)
    x, y = checked_regression(inputs, targets)
    require(
        sgd.samples in (None, len(x)),
        f"samples is {sgd.samples}, but inputs has length {len(x)}",
        argument="samples",
        value=sgd.samples,
        remedy="set samples to the number of rows of inputs, or omit samples to draw batches with replacement",
    )
    noisy_steps(loss.curvature, 0.0, sgd).require_stable()
    return _Regression(
        x,
        x @ loss.centre - y,
        loss.centre,
        loss.directions * loss.curvature @ loss.directions.T,
        float(sgd.weight_decay),
        float(sgd.learning_rate),
        float(sgd.momentum),
        sgd.noise_share,
    )


def _stationary_moments(
    data: _Regression, spread: np.ndarray, cross: np.ndarray, velocity_covariance: np.ndarray
) -> WeightMoments:
    zero = np.zeros_like(data.centre)
    return WeightMoments(data.centre, zero, spread, cross, velocity_covariance, np.asarray(data.loss(zero, spread)))


def initial_offset(
    centre: np.ndarray, start: ArrayLike | None, velocity: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the initial distance from the centre and the initial velocity; None means zero weights or velocity."""
    initial, initial_velocity = (
        np.zeros(len(centre)) if value is None else require_array(name, value, (len(centre),))
        for name, value in (("start", start), ("velocity", velocity))
    )
    return initial - centre, initial_velocity


def weight_moments(
    means: np.ndarray, covariances: np.ndarray, centre: np.ndarray, loss: Callable[..., float], shape: tuple[int, ...]
) -> WeightMoments:
    """Convert moments of the distance from the centre to moments of the weights, with the shape of the steps."""
    losses = np.array([loss(mean[0], spread[0, 0]) for mean, spread in zip(means, covariances, strict=True)])
    parts = (
        means[:, 0] + centre,
        means[:, 1],
        covariances[:, 0, 0],
        covariances[:, 0, 1],
        covariances[:, 1, 1],
        losses,
    )
    return WeightMoments(*(part.reshape(shape + part.shape[1:]) for part in parts))
