"""Mean and covariance of the weights of SGD with momentum on finite data, exactly, batch by batch."""

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

__all__ = ["WeightMoments", "finite_data_moments", "finite_data_stationary_moments", "start_near", "weight_moments"]

_MOST, _SETTLED = 20_000, 1e-14  # iterations, and the relative change at which they have settled
_covers = functools.partial(
    covers,
    network="linear regression, one output",
    data="any, in batches drawn afresh",
    start="any",
    reference="arXiv:2107.09133",
)


class WeightMoments(NamedTuple):
    """Means and covariances of weights θ and velocities v, with the steps in front where there are any.

    Attributes:
        position: E θ, shape (..., d).
        velocity: E v, of the last displacement over the learning rate, shape (..., d).
        position_covariance: Cov(θ, θ), shape (..., d, d).
        covariance: Cov(θ, v), shape (..., d, d).
        velocity_covariance: Cov(v, v), shape (..., d, d).
        loss: ½ E(xᵀθ − y)², shape (...), the expected loss without decay. The noise of a step grows with it, and is
            additive only while it is nearly that at the centre.
    """

    position: Float[np.ndarray, "*steps d"]
    velocity: Float[np.ndarray, "*steps d"]
    position_covariance: Float[np.ndarray, "*steps d d"]
    covariance: Float[np.ndarray, "*steps d d"]
    velocity_covariance: Float[np.ndarray, "*steps d d"]
    loss: Float[np.ndarray, "*steps"]

    __repr__ = short_repr


@_covers(gives="mean and covariance of weights and velocity of SGD on given data after any number of steps")
def finite_data_moments(
    steps: NonNegativeNumbers,
    inputs: FiniteNumbers,
    targets: FiniteNumbers,
    sgd: SGD,
    *,
    start: FiniteNumbers | None = None,
    velocity: FiniteNumbers | None = None,
) -> WeightMoments:
    """The exact recursion Cov' = M Cov Mᵀ + N Σ̄/S Nᵀ, whose noise Σ̄ is that of the data at the weights so far.

    Of steps v ← β v − (g + λθ), θ ← θ + η v with the mean gradient g of a batch, a = θ − μ has the mean m ← M m and

        Σ̄ = (1/N) Σ_i x_i x_iᵀ E(x_iᵀθ − y_i)² − E[∇L ∇Lᵀ],   E(x_iᵀθ − y_i)² = (x_iᵀE θ − y_i)² + x_iᵀ Cov(θ) x_i,

    the covariance of the gradients of single samples, averaged over the weights. The additive noise of
    `discrete_moments` is the limit of small steps near μ, where Σ̄ is Σ(μ). Nothing is assumed of residuals.

    Args:
        steps: Numbers k ≥ 0 of steps, of any shape; time and memory grow as k (N d² + d³), and as d² for each told.
        inputs: X, shape (N, d).
        targets: y, shape (N,) or (N, 1).
        sgd: η, β, λ and S, with η (ρ + λ) < 2(1 + β) for all eigenvalues ρ of XᵀX/N; N too where no batch contains a
            sample twice. Batches are independent of each other, unlike those of an epoch.
        start: θ_0, shape (d,); zero if not given.
        velocity: v_0, shape (d,); zero if not given, as of an optimiser that has made no step.

    Raises:
        InputError: A setting out of range, steps that diverge, arrays that do not fit, or an answer too large for a
            number, as of a second moment that grows.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, without its
        approximations.

    Example:
        >>> found = finite_data_moments(1, [[1.0], [1.0]], [0.0, 2.0], SGD(0.5))
        >>> print(found.position, found.position_covariance)
        [0.5] [[0.25]]
    """
    k = whole_steps("steps", steps)
    data = _checked(inputs, targets, sgd)
    place, push = start_near(data.centre, start, velocity)
    with np.errstate(all="ignore"):
        found = moments_step_by_step(k.ravel(), data.steep, (place, push), data.rate, data.momentum, data.noise_of_step)
    return weight_moments(*found, data.centre, data.loss, k.shape)


@_covers(gives="stationary covariance of weights and velocity of SGD on given data")
def finite_data_stationary_moments(inputs: FiniteNumbers, targets: FiniteNumbers, sgd: SGD) -> WeightMoments:
    """What `finite_data_moments` tend to: the solution of Cov = M Cov Mᵀ + N Σ̄(Cov)/S Nᵀ, by iteration over Σ̄.

    Args:
        inputs: X, shape (N, d).
        targets: y, shape (N,) or (N, 1).
        sgd: η, β, λ and S, with η (ρ + λ) < 2(1 + β) for all eigenvalues ρ of XᵀX/N, and λ > 0 where directions of the
            weights occur in no sample; N too where no batch contains a sample twice.

    Returns:
        Moments without an axis of steps, of the mean weights μ and the mean velocity zero.

    Raises:
        InputError: A setting out of range, steps that diverge in the mean or in their second moment, or arrays that do
            not fit.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, without its
        approximations.

    Example:
        >>> found = finite_data_stationary_moments([[1.0], [1.0]], [0.0, 2.0], SGD(0.5))
        >>> print(found.position, found.position_covariance.round(6))
        [1.] [[0.333333]]
    """
    data = _checked(inputs, targets, sgd)
    still, steps = np.zeros_like(data.centre), sgd.without_batches
    spread, before = np.zeros_like(data.hessian), np.inf
    for count in range(_MOST):
        drawn = data.noise_of_step(still, spread)
        if not np.abs(drawn).max() > 0:  # all interpolate, and come to rest
            return _one(data, spread, spread, spread)
        found = stationary_covariance(data.hessian, drawn, steps)
        change, size = float(np.abs(found.position - spread).max()), float(np.abs(found.position).max())
        spread = found.position
        if change <= _SETTLED * size:
            return _one(data, found.position, found.cross, found.velocity)
        # The noise is a positive function of the covariance: what it adds falls in the end, or grows for ever.
        require(
            np.isfinite(size) and (count < 100 or change < before),
            "the second moment of the weights grows under the noise of such batches",
            argument="learning_rate",
            value=sgd.learning_rate,
            remedy="choose a smaller rate or larger batches",
        )
        before = change
    return _one(data, found.position, found.cross, found.velocity)


@dataclasses.dataclass(frozen=True)
class _Regression:
    """A linear regression in batches, whose settings are checked."""

    inputs: np.ndarray
    residuals: np.ndarray  # at the centre
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
        """Σ̄/S where a = θ − μ has this mean and covariance."""
        weighed = self.inputs.T * self._squares(mean, spread)
        slope = self.hessian @ mean - self.decay * self.centre
        expected = self.hessian @ spread @ self.hessian + np.outer(slope, slope)
        noise = weighed @ self.inputs / len(self.inputs) - expected
        return self.share * (noise + noise.T) / 2

    def loss(self, mean: np.ndarray, spread: np.ndarray) -> float:
        return float(self._squares(mean, spread).mean() / 2)

    def _squares(self, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """E(x_iᵀθ − y_i)²."""
        return (self.inputs @ mean + self.residuals) ** 2 + np.sum((self.inputs @ spread) * self.inputs, axis=1)


def _checked(inputs: ArrayLike, targets: ArrayLike, sgd: SGD) -> _Regression:
    loss = quadratic_loss(inputs, targets, weight_decay=sgd.weight_decay)
    x, y = checked_regression(inputs, targets)
    require(
        sgd.samples in (None, len(x)),
        f"samples is {sgd.samples}, and the data have {len(x)}",
        argument="samples",
        value=sgd.samples,
        remedy="give the number of rows of inputs, or leave it out for batches drawn with replacement",
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


def _one(data: _Regression, spread: np.ndarray, cross: np.ndarray, swift: np.ndarray) -> WeightMoments:
    still = np.zeros_like(data.centre)
    return WeightMoments(data.centre, still, spread, cross, swift, np.asarray(data.loss(still, spread)))


def start_near(
    centre: np.ndarray, start: ArrayLike | None, velocity: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray]:
    """Where weights start from the centre, and their velocity, each zero if not given."""
    place, push = (
        np.zeros(len(centre)) if value is None else require_array(name, value, (len(centre),))
        for name, value in (("start", start), ("velocity", velocity))
    )
    return place - centre, push


def weight_moments(
    means: np.ndarray, covariances: np.ndarray, centre: np.ndarray, loss: Callable[..., float], shape: tuple[int, ...]
) -> WeightMoments:
    """The moments of weights from those of the distance to the centre, at numbers of steps of any shape."""
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
