"""Levenberg–Marquardt solver for many small least-squares problems at once, with bounds and the Huber loss."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

__all__ = ["Residuals", "descend", "huber", "huber_weights"]

# Function that returns the residuals of laws and their derivatives with respect to the coefficients; the integers are
# the indices of the problems.
Residuals = Callable[
    [Float[np.ndarray, "laws numbers"], Int[np.ndarray, " laws"]],
    tuple[Float[np.ndarray, "laws rows"], Float[np.ndarray, "laws rows numbers"]],
]

_MOST_STEPS = 300
_STIFF = 1e10  # damping above which steps are negligible
_FREE = 1e-2  # damping below which a step is nearly a full Gauss–Newton step


def descend(
    residuals: Residuals,
    start: Float[np.ndarray, "laws numbers"],
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    threshold: ArrayLike = np.inf,
    precision: float = 1e-13,
) -> tuple[Float[np.ndarray, "laws numbers"], Float[np.ndarray, " laws"]]:
    """Minimise the Huber loss of each law from its initial values; return the laws and their losses.

    SciPy's `least_squares` solves one problem at a time, but a confidence interval requires solving about a hundred
    small ones.

    Args:
        residuals: Function that returns the residuals of the laws and their derivatives.
        start: Initial laws, one per row.
        lower: Lower bound of each coefficient. A coefficient at its bound stays there while the gradient pushes it
            against the bound.
        upper: Upper bound of each coefficient.
        threshold: Size of a residual above which the Huber loss is linear; one value, or one per residual.
        precision: Relative decrease of the loss at which the iteration stops; below 1e-13, rounding dominates.
    """
    lower, upper = (np.broadcast_to(np.asarray(bound, float), start.shape[1:]) for bound in (lower, upper))
    laws = np.clip(start, lower, upper)
    places = np.arange(len(laws))
    damping, active = np.full(len(laws), 1e-3), np.ones(len(laws), bool)
    rest, slopes = residuals(laws, places)
    thresholds = np.broadcast_to(np.asarray(threshold, float), rest.shape)
    sums = huber(rest, thresholds)
    for _ in range(_MOST_STEPS):
        own = np.flatnonzero(active)
        now, left, kept = laws[own], damping[own], slopes[own]
        weighted = kept * huber_weights(rest[own], thresholds[own])[..., None]
        force = np.matmul(weighted.swapaxes(1, 2), rest[own][..., None])[..., 0]
        stays = ((now <= lower) & (force > 0)) | ((now >= upper) & (force < 0))
        curvature = np.matmul(weighted.swapaxes(1, 2), kept)
        curvature[stays[:, :, None] | stays[:, None, :]] = 0
        force[stays] = 0
        diagonal = np.einsum("ckk->ck", curvature)
        diagonal += left[:, None] * diagonal + 1e-300 + stays
        step = np.linalg.solve(curvature, force[..., None])[..., 0]
        trial = np.clip(now - step, lower, upper)
        # A step that is too long may overflow or underflow; such a step is rejected.
        with np.errstate(all="ignore"):
            found, found_slopes = residuals(trial, own)
            sum_found = huber(found, thresholds[own])
        better = sum_found < sums[own]
        gained = np.where(better, sums[own] - sum_found, np.sum(force * step, axis=1))
        done = (gained <= precision * sums[own]) & (left < _FREE)
        taken = own[better]
        laws[taken], sums[taken] = trial[better], sum_found[better]
        rest[taken], slopes[taken] = found[better], found_slopes[better]
        damping[own] = np.where(better, np.maximum(left / 5, 1e-12), left * 4)
        active[own] = ~done & (damping[own] <= _STIFF)
        if not active.any():
            break
    return laws, sums


def huber(rest: Float[np.ndarray, "laws rows"], threshold: ArrayLike) -> Float[np.ndarray, " laws"]:
    """Huber loss: the sum of r² for |r| up to the threshold t, and of 2 t |r| − t² above it."""
    size = np.abs(rest)
    short = np.minimum(size, threshold)
    return np.sum(short * (2 * size - short), axis=-1)


def huber_weights(rest: Float[np.ndarray, "laws rows"], threshold: ArrayLike) -> Float[np.ndarray, "laws rows"]:
    """Weights for which the weighted sum of squares has the same gradient as the Huber loss."""
    size = np.abs(rest)
    return np.minimum(1.0, np.divide(threshold, size, out=np.ones_like(size), where=size > threshold))
