"""Exact samples of the Langevin equation of SGD on a quadratic loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynascope.flows.langevin import LangevinRuns
from dynascope.theory import SGD
from dynascope.theory.noise import langevin_moments
from dynascope.theory.sgd import Momentum
from dynascope.validation import require_array, require_increasing, require_shape
from dynascope.validation.bounded import (
    FiniteNumbers,
    NonNegativeFloat,
    NonNegativeNumbers,
    PositiveFloat,
    PositiveInt,
    Seed,
)

__all__ = ["ornstein_uhlenbeck"]


def ornstein_uhlenbeck(
    curvature: ArrayLike,
    *,
    noise: NonNegativeNumbers,
    times: NonNegativeNumbers,
    learning_rate: PositiveFloat,
    momentum: Momentum = 0.0,
    weight_decay: NonNegativeFloat = 0.0,
    batch_size: PositiveInt = 1,
    runs: PositiveInt = 1,
    position: FiniteNumbers = 0.0,
    velocity: FiniteNumbers = 0.0,
    seed: Seed = 0,
) -> LangevinRuns:
    """Draw runs of the Langevin equation of SGD with momentum on a quadratic loss from their exact distribution.

        (a, b)(t + τ) = P(τ) (a, b)(t) + Cov(τ)^½ z

    along each mode, where the propagator P and the covariance are those of `theory.noise.langevin_moments`. There is no
    discretisation error, however widely the times are spaced.

    Args:
        curvature: Curvature ρ of each mode, shape (d,).
        noise: Variance s ≥ 0 of the gradient over samples along each mode.
        times: Increasing times t = ηk ≥ 0.
        learning_rate: Learning rate η > 0 of SGD.
        momentum: Momentum β, 0 ≤ β < 1.
        weight_decay: Weight decay λ ≥ 0.
        batch_size: Batch size S.
        runs: Number of runs.
        position: Initial position a of all runs, the distance from the minimum along each mode.
        velocity: Initial velocity b of all runs.
        seed: Seed of the noise.

    Raises:
        InputError: If an argument is outside its domain.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133.

    Example:
        >>> found = ornstein_uhlenbeck([1.0, 0.5], noise=[0.1, 0.05], times=[1e6], learning_rate=0.1, runs=2000)
        >>> print(np.allclose(found.position[-1].var(axis=0), 0.005, rtol=0.2))
        True
    """
    clock = np.asarray(times)
    require_shape("times", clock, (None,))
    require_increasing("times", clock)
    random = np.random.default_rng(seed)
    modes = np.atleast_1d(require_array("curvature", curvature, (), (None,)))
    sgd, chosen = SGD(learning_rate, momentum, weight_decay, batch_size), {"curvature": modes, "noise": noise}
    gaps = np.diff(clock, prepend=0.0)
    mean = langevin_moments(clock[0], sgd, **chosen, position=position, velocity=velocity)
    placed, pushed = (langevin_moments(gaps, sgd, **chosen, **{name: 1.0}) for name in ("position", "velocity"))
    a, b = np.broadcast_to(mean.position, (runs, len(modes))), np.broadcast_to(mean.velocity, (runs, len(modes)))
    found = np.empty((2, len(clock), runs, len(modes)))
    for k in range(len(clock)):
        if k:
            a, b = (
                placed.position[k] * a + pushed.position[k] * b,
                placed.velocity[k] * a + pushed.velocity[k] * b,
            )
        first, second = random.standard_normal((2, runs, len(modes)))
        # Cholesky factor of the covariance; zero for modes without noise.
        wide = np.sqrt(placed.position_variance[k])
        shared = placed.covariance[k] / np.where(wide > 0, wide, 1.0)
        own = np.sqrt(np.maximum(placed.velocity_variance[k] - shared**2, 0.0))
        a, b = a + wide * first, b + shared * first + own * second
        found[:, k] = a, b
    return LangevinRuns(clock, found[0], found[1])
