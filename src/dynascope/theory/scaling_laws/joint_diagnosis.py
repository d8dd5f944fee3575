"""Checks of a fitted joint law: outlying runs, and residual curvature in ln N and ln D."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import f as fisher

from dynascope.theory.scaling_laws.forward_search import ROUNDING, Family, outlying_points, scatter_trend
from dynascope.theory.scaling_laws.joint_search import LOWER, UPPER, Scaled, joint_residuals, joint_starts

__all__ = ["SAME", "basis", "curvature_p_value", "outlying_runs"]

SAME = 1e-6  # relative size of the remainder of a term below which it is a combination of the others


def curvature_p_value(data: Scaled, law: Float[np.ndarray, " 5"], threshold: float) -> float | None:
    """P value of the F test of (ln N)², ln N ln D and (ln D)² in the residuals of a fitted law.

    The law is linearised at the fit, residuals are clipped at the Huber threshold, and each run is weighted by the
    inverse of `scatter_trend`. The test therefore does not mistake outliers and noisy small runs for curvature.

    Returns:
        The p value; 1 if the law is exact up to rounding; None if there are too few runs, or too few distinct N and D,
        for the test.
    """
    rest, slopes = (each[0] for each in joint_residuals(law[None], data.n, data.d, data.y))
    if np.sqrt(np.mean(rest**2)) < ROUNDING:
        return 1.0
    weights = 1 / scatter_trend(rest, (data.n, data.d))
    # A coefficient at its bound does not count as fitted.
    fitted = basis((slopes * weights[:, None])[:, (law > LOWER) & (law < UPPER)], 0.0)
    terms = np.stack([data.n**2, data.n * data.d, data.d**2], axis=-1)
    terms *= weights[:, None] / np.max(np.abs(terms), axis=0)
    left = np.clip(rest, -threshold, threshold) * weights
    left -= fitted @ (fitted.T @ left)
    added = basis(terms - fitted @ (fitted.T @ terms), SAME * float(np.linalg.norm(terms)))
    number, freedom = added.shape[1], left.size - fitted.shape[1] - added.shape[1]
    if number == 0 or freedom < 1:
        return None
    explained = float(np.sum((added.T @ left) ** 2))
    unexplained = max(float(left @ left) - explained, ROUNDING**2)
    return float(fisher.sf(explained / number / (unexplained / freedom), number, freedom))


def basis(columns: Float[np.ndarray, "points columns"], least: float) -> Float[np.ndarray, "points rank"]:
    """Return an orthonormal basis of the columns, without directions whose singular value is at most `least`."""
    axes, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return axes[:, sizes > max(least, 1e-10 * float(sizes.max(initial=0.0)))]


def outlying_runs(data: Scaled, law: Float[np.ndarray, " 5"]) -> Bool[np.ndarray, " points"]:
    """Mark the runs whose losses contradict the joint law fitted to the others, using `outlying_points`."""

    def residuals(laws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return joint_residuals(laws, data.n, data.d, data.y)

    def start(rows: np.ndarray) -> np.ndarray:
        return joint_starts(data.take(rows))[0]

    return outlying_points(Family(residuals, start, LOWER, UPPER, (data.n, data.d)), law)
