"""Find the runs that contradict the joint law of the other runs."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from dynascope.theory.scaling_laws.forward_search import Family, outlying_points
from dynascope.theory.scaling_laws.joint_search import LOWER, UPPER, Scaled, joint_residuals, joint_starts

__all__ = ["outlying_runs"]


def outlying_runs(data: Scaled, law: Float[np.ndarray, " 5"]) -> Bool[np.ndarray, " points"]:
    """Mark the runs whose losses contradict the joint law of the others, by `outlying_points`.

    Args:
        data: The runs.
        law: E, ln A, ln B, a and b, fitted to all of them.
    """

    def residuals(laws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return joint_residuals(laws, data.n, data.d, data.y)

    def start(rows: np.ndarray) -> np.ndarray:
        return joint_starts(data.take(rows))[0]

    return outlying_points(Family(residuals, start, LOWER, UPPER, (data.n, data.d)), law)
