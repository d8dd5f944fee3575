"""Saddles of balanced square networks whose initial determinant has the wrong sign."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float

from dynascope.theory.balanced.balance import Balance, TwoLayers, balance_rounding

__all__ = ["distance_kept", "warn_of_opposite_determinants"]

_SINGULAR = 1e-10  # smallest over largest singular value, below which a map counts as singular


def distance_kept(
    first: Float[np.ndarray, "*members d h"], second: Float[np.ndarray, "*members h c"], target_map: np.ndarray
) -> Float[np.ndarray, "*all_members"]:
    """Return the smallest distance ‖W₁W₂ − Σ‖ that gradient flow can reach if λ = 0 and the map W₁W₂ is square.

    Gradient flow conserves the sign of det W₁W₂. If det Σ has the opposite sign, the nearest reachable map is singular,
    and the distance is the smallest singular value of Σ. If the signs agree, or one of the maps does not have full
    rank, the distance is zero.

    Example:
        >>> distance_kept(np.eye(2), np.diag([1.0, -1.0]), np.diag([2.0, 0.5])).item()
        0.5
    """
    start = np.asarray(first) @ np.asarray(second)
    leading = np.broadcast_shapes(start.shape[:-2], np.shape(target_map)[:-2])
    if not _can_be_stuck(first, second):
        return np.zeros(leading)
    (sign, start_full, _), (target_sign, target_full, least) = map(_of_square, (start, np.asarray(target_map)))
    return np.asarray(np.where((sign * target_sign < 0) & start_full & target_full, least, 0.0))


def warn_of_opposite_determinants(
    network: TwoLayers, target_map: Any, balance: Balance
) -> Bool[np.ndarray, "*members"]:
    """Warn if layers flow into a saddle because their determinant has the wrong sign.

    Returns:
        Whether each member flows into a saddle.
    """
    known = jax.tree.map(np.asarray, network)
    if not _can_be_stuck(known.first, known.second):
        return np.zeros(np.broadcast_shapes(balance.error.shape, np.shape(target_map)[:-2]), bool)
    # For balanced layers, 2 ‖W₁‖ ‖W₂‖ is the size of the layers at any rates.
    size = 2 * np.linalg.norm(known.first, axis=(-2, -1)) * np.linalg.norm(known.second, axis=(-2, -1))
    rounding = balance_rounding(np.result_type(known.first, known.second))
    balanced = (balance.error <= rounding) & (np.abs(balance.value) <= rounding * size)
    distance = np.where(balanced, distance_kept(known.first, known.second, target_map), 0.0)
    stuck = np.asarray(distance > 0)
    if not stuck.any():
        return stuck
    least = float(distance[stuck].min())
    members = "" if stuck.ndim == 0 else f" of {np.sum(stuck)} of {stuck.size} members"
    warnings.warn(
        f"the determinants of the initial W₁W₂ and of the target map Σ{members} differ in sign. Balanced layers "
        f"(λ = 0) conserve the sign, so the flow stops at a saddle, where ½‖W₁W₂ − Σ‖² is at least {least**2 / 2:.4g} "
        "instead of 0. To avoid the saddle, negate one column of the initial second layer",
        stacklevel=3,
    )
    return stuck


def _can_be_stuck(first: Any, second: Any) -> bool:
    """Whether layers of these shapes have a square product that can have full rank."""
    inputs, width, outputs = np.shape(first)[-2], np.shape(first)[-1], np.shape(second)[-1]
    return inputs == outputs <= width


def _of_square(maps: np.ndarray) -> tuple[Any, Any, Any]:
    """Return the sign of the determinant, whether the map has full rank, and the smallest singular value."""
    sizes = np.linalg.svd(maps, compute_uv=False)
    return np.linalg.slogdet(maps)[0], sizes[..., -1] > _SINGULAR * sizes[..., 0], sizes[..., -1]
