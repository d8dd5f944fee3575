"""Mean and covariance of z ← M z + noise after many steps, by doubling or one after the other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.validation import require_whole_numbers

__all__ = ["moments_step_by_step", "powers_and_sums", "step_matrix", "whole_steps"]

_MOST = 2**53  # the whole numbers that are exact as floating-point numbers


def step_matrix(curvature: np.ndarray, rate: float, momentum: float) -> Float[np.ndarray, "*modes 2 2"]:
    """M of (a, v) ← M (a, v) for steps v ← β v − h a, a ← a + η v of each mode."""
    h, one = np.asarray(curvature, float), np.ones(np.shape(curvature))
    rows = np.stack([1 - rate * h, rate * momentum * one, -h, momentum * one], axis=-1)
    return rows.reshape(*h.shape, 2, 2)


def whole_steps(name: str, steps: ArrayLike) -> np.ndarray:
    """Numbers of steps as integers."""
    k = np.asarray(steps, float)
    require_whole_numbers(name, k, most=_MOST)
    return np.asarray(k.astype(np.int64))


def powers_and_sums(
    steps: np.ndarray, transition: Float[np.ndarray, "*batch n n"], noise: Float[np.ndarray, "*batch n n"]
) -> tuple[np.ndarray, np.ndarray]:
    """Mᵏ and Σ_{j<k} Mʲ Q Mʲᵀ at each number of steps, of shape (steps, *batch, n, n), in log₂ k multiplications."""
    shape = (len(steps), *transition.shape)
    power = np.broadcast_to(np.eye(transition.shape[-1]), shape).copy()
    total = np.zeros(shape)
    doubled, added, left = transition, noise, np.array(steps)
    while left.any():
        odd = left % 2 == 1
        # The steps so far come after those of this power of two.
        total[odd] = total[odd] + power[odd] @ added @ np.swapaxes(power[odd], -1, -2)
        power[odd] = power[odd] @ doubled
        added = added + doubled @ added @ np.swapaxes(doubled, -1, -2)
        doubled, left = doubled @ doubled, left // 2
    return power, total


def moments_step_by_step(
    steps: np.ndarray,
    hessian: Float[np.ndarray, "d d"],
    start: tuple[np.ndarray, np.ndarray],
    rate: float,
    momentum: float,
    noise: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Means (steps, 2, d) and covariances (steps, 2, 2, d, d) of position and velocity where noise depends on both.

    Args:
        steps: Numbers of steps at which to tell, a row in any order.
        hessian: H + λ, so that v ← β v − (H + λ) a + noise and a ← a + η v.
        start: a and v at the start, which are known.
        rate: η.
        momentum: β.
        noise: The covariance of the noise of a step, from the mean and the covariance of a before it.
    """
    size = len(hessian)
    place, push = (np.array(part, float) for part in start)
    spread, cross, swift = np.zeros((3, size, size))  # of a aᵀ, a vᵀ and v vᵀ
    means, covariances = np.empty((len(steps), 2, size)), np.empty((len(steps), 2, 2, size, size))
    for k in range(int(steps.max(initial=0)) + 1):
        for row in np.flatnonzero(steps == k):
            means[row] = place, push
            covariances[row] = [[spread, cross], [cross.T, swift]]
        drawn = noise(place, spread)
        push = momentum * push - hessian @ place
        place = place + rate * push
        # v' = β v − (H + λ) a + noise, and so for its products; a' = a + η v'.
        with_push = momentum * cross - spread @ hessian
        swift = momentum**2 * swift - momentum * (hessian @ cross + cross.T @ hessian) + hessian @ spread @ hessian
        swift = swift + drawn
        spread = spread + rate * (with_push + with_push.T) + rate**2 * swift
        cross = with_push + rate * swift
    return means, covariances
