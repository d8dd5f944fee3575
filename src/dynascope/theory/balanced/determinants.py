"""Balanced square maps keep the sign of their determinant, and those of the other sign are never learned."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float

from dynascope.theory.balanced.balance import Balance, TwoLayers, balance_rounding

__all__ = ["distance_kept", "warn_of_opposite_determinants"]

_SINGULAR = 1e-10  # of the largest singular value, below which a map has no full rank


def distance_kept(
    first: Float[np.ndarray, "*members d h"], second: Float[np.ndarray, "*members h c"], target_map: np.ndarray
) -> Float[np.ndarray, "*all_members"]:
    """The least distance ‖W₁W₂ − Σ‖ at which balanced layers (λ = 0) keep a square map from its target.

    Their determinant keeps its sign. If that of Σ is the other, the nearest map on the way is singular, and its
    distance the smallest singular value of Σ; else the distance is zero, as it is for maps without full rank.

    Example:
        >>> distance_kept(np.eye(2), np.diag([1.0, -1.0]), np.diag([2.0, 0.5])).item()
        0.5
    """
    start = np.asarray(first) @ np.asarray(second)
    leading = np.broadcast_shapes(start.shape[:-2], np.shape(target_map)[:-2])
    if not _can_be_stuck(first, second):
        return np.zeros(leading)
    (sign, full, _), (wanted, whole, least) = map(_of_square, (start, np.asarray(target_map)))
    return np.asarray(np.where((sign * wanted < 0) & full & whole, least, 0.0))


def warn_of_opposite_determinants(
    network: TwoLayers, target_map: Any, balance: Balance
) -> Bool[np.ndarray, "*members"]:
    """Warn of layers that stop at a saddle, since the sign of their determinant is not that of the target.

    Returns:
        Which members stop at a saddle.
    """
    known = jax.tree.map(np.asarray, network)
    if not _can_be_stuck(known.first, known.second):
        return np.zeros(np.broadcast_shapes(balance.error.shape, np.shape(target_map)[:-2]), bool)
    # Of layers in balance, whatever their rates.
    size = 2 * np.linalg.norm(known.first, axis=(-2, -1)) * np.linalg.norm(known.second, axis=(-2, -1))
    rounding = balance_rounding(np.result_type(known.first, known.second))
    balanced = (balance.error <= rounding) & (np.abs(balance.value) <= rounding * size)
    distance = np.where(balanced, distance_kept(known.first, known.second, target_map), 0.0)
    stuck = np.asarray(distance > 0)
    if not stuck.any():
        return stuck
    least = float(distance[stuck].min())
    who = "" if stuck.ndim == 0 else f" of {np.sum(stuck)} of {stuck.size} members"
    warnings.warn(
        f"the determinants of the start W₁W₂ and of the target map Σ{who} differ in sign, and balanced layers (λ = 0) "
        f"keep theirs: the flow stops at a saddle, where ½‖W₁W₂ − Σ‖² is {least**2 / 2:.4g} or more and not 0; start "
        "from the second layer with one column negated",
        stacklevel=3,
    )
    return stuck


def _can_be_stuck(first: Any, second: Any) -> bool:
    """Whether layers of these shapes have a square map that can be of full rank."""
    inputs, width, outputs = np.shape(first)[-2], np.shape(first)[-1], np.shape(second)[-1]
    return inputs == outputs <= width


def _of_square(maps: np.ndarray) -> tuple[Any, Any, Any]:
    """The sign of the determinant, whether the rank is full, and the smallest singular value."""
    sizes = np.linalg.svd(maps, compute_uv=False)
    return np.linalg.slogdet(maps)[0], sizes[..., -1] > _SINGULAR * sizes[..., 0], sizes[..., -1]
