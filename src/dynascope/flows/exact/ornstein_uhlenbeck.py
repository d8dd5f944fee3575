"""Runs of the Langevin equation of SGD on a quadratic loss, drawn from their exact law at any times."""

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
    """(a, b)(t + τ) = P(τ) (a, b)(t) + Cov(τ)^½ z along modes, with the propagator and the covariance of the theory.

    There is no error of a time step, however far the times are apart. The law is that of
    `theory.noise.langevin_moments`.

    Args:
        curvature: ρ of each mode, shape (d,).
        noise: s ≥ 0, the variance over samples of the gradient along each mode.
        times: Times t = ηk ≥ 0, increasing.
        learning_rate: η > 0 of the SGD that is modelled.
        momentum: β ≥ 0, below one.
        weight_decay: λ ≥ 0.
        batch_size: S, the samples of a batch.
        runs: Number of runs.
        position: a of all runs at the start, the distance from the centre along each mode.
        velocity: b of all runs at the start.
        seed: Seed of the noise.

    Raises:
        InputError: An argument is outside its domain.

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
        # The root of the covariance by its triangle, which is zero where nothing moves.
        wide = np.sqrt(placed.position_variance[k])
        shared = placed.covariance[k] / np.where(wide > 0, wide, 1.0)
        own = np.sqrt(np.maximum(placed.velocity_variance[k] - shared**2, 0.0))
        a, b = a + wide * first, b + shared * first + own * second
        found[:, k] = a, b
    return LangevinRuns(clock, found[0], found[1])
