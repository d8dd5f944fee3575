"""Mean and covariance of z ← M z + noise after many steps, by repeated squaring or step by step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.validation import require_whole_numbers

__all__ = ["moments_step_by_step", "powers_and_sums", "step_matrix", "whole_steps"]

_MOST = 2**53  # largest whole number up to which float64 is exact


def step_matrix(curvature: np.ndarray, rate: float, momentum: float) -> Float[np.ndarray, "*modes 2 2"]:
    """Return the matrix M of (a, v) ← M (a, v) for the steps v ← β v − h a, a ← a + η v of each mode."""
    h, one = np.asarray(curvature, float), np.ones(np.shape(curvature))
    rows = np.stack([1 - rate * h, rate * momentum * one, -h, momentum * one], axis=-1)
    return rows.reshape(*h.shape, 2, 2)


def whole_steps(name: str, steps: ArrayLike) -> np.ndarray:
    """Check that the numbers of steps are whole, and convert them to integers."""
    k = np.asarray(steps, float)
    require_whole_numbers(name, k, most=_MOST)
    return np.asarray(k.astype(np.int64))


def powers_and_sums(
    steps: np.ndarray, transition: Float[np.ndarray, "*batch n n"], noise: Float[np.ndarray, "*batch n n"]
) -> tuple[np.ndarray, np.ndarray]:
    """Compute Mᵏ and Σ_{j<k} Mʲ Q Mʲᵀ for each number of steps k by repeated squaring, shape (steps, *batch, n, n)."""
    shape = (len(steps), *transition.shape)
    power = np.broadcast_to(np.eye(transition.shape[-1]), shape).copy()
    total = np.zeros(shape)
    doubled, added, remaining = transition, noise, np.array(steps)
    while remaining.any():
        odd = remaining % 2 == 1
        # The steps counted so far follow the steps of this power of two.
        total[odd] = total[odd] + power[odd] @ added @ np.swapaxes(power[odd], -1, -2)
        power[odd] = power[odd] @ doubled
        added = added + doubled @ added @ np.swapaxes(doubled, -1, -2)
        doubled, remaining = doubled @ doubled, remaining // 2
    return power, total


def moments_step_by_step(
    steps: np.ndarray,
    hessian: Float[np.ndarray, "d d"],
    start: tuple[np.ndarray, np.ndarray],
    rate: float,
    momentum: float,
    noise: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Means (steps, 2, d) and covariances (steps, 2, 2, d, d) of position and velocity for state-dependent noise.

    Args:
        steps: Numbers of steps, shape (k,), in any order.
        hessian: H + λ of the steps v ← β v − (H + λ) a + noise, a ← a + η v.
        start: Initial a and v, which are not random.
        rate: η.
        momentum: β.
        noise: Function that returns the noise covariance of a step, given the mean and covariance of a before the step.
    """
    size = len(hessian)
    position, velocity = (np.array(part, float) for part in start)
    spread, cross, velocity_covariance = np.zeros((3, size, size))  # covariances of (a, a), (a, v) and (v, v)
    means, covariances = np.empty((len(steps), 2, size)), np.empty((len(steps), 2, 2, size, size))
    for k in range(int(steps.max(initial=0)) + 1):
        for row in np.flatnonzero(steps == k):
            means[row] = position, velocity
            covariances[row] = [[spread, cross], [cross.T, velocity_covariance]]
        step_noise = noise(position, spread)
        velocity = momentum * velocity - hessian @ position
        position = position + rate * velocity
        # Products of v' = β v − (H + λ) a + noise and a' = a + η v'.
        position_velocity = momentum * cross - spread @ hessian
        velocity_covariance = (
            momentum**2 * velocity_covariance
            - momentum * (hessian @ cross + cross.T @ hessian)
            + hessian @ spread @ hessian
        )
        velocity_covariance = velocity_covariance + step_noise
        spread = spread + rate * (position_velocity + position_velocity.T) + rate**2 * velocity_covariance
        cross = position_velocity + rate * velocity_covariance
    return means, covariances
