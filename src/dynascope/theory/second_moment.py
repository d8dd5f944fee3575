"""Assumptions about the second moment E[x xᵀ] of the inputs: measure violations and reject large ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from dynascope.theory.assumptions import UNCORRELATED_INPUTS, WHITE_INPUTS, Assumption
from dynascope.validation import require, require_covariance

__all__ = ["MEASURED", "distance_from_white", "largest_correlation", "require_moment"]


def distance_from_white(moment: Float[np.ndarray, "d d"]) -> float:
    """Largest relative deviation of an eigenvalue of E[x xᵀ] from the mean eigenvalue; 1 if all eigenvalues vanish.

    Example:
        >>> distance_from_white(np.diag([1.0, 3.0])), distance_from_white(4 * np.eye(2))
        (0.5, 0.0)
    """
    mean = float(np.trace(moment)) / len(moment)
    return float(np.abs(np.linalg.eigvalsh(moment / mean) - 1).max()) if mean > 0 else 1.0


def largest_correlation(moment: Float[np.ndarray, "d d"]) -> float:
    """Largest absolute correlation between two inputs.

    Example:
        >>> largest_correlation(np.array([[4.0, 1.0], [1.0, 1.0]]))
        0.5
    """
    spread = np.sqrt(np.diag(moment))
    some = spread > 0
    correlation = np.abs(moment[np.ix_(some, some)] / np.outer(spread[some], spread[some]))
    np.fill_diagonal(correlation, 0)
    return float(correlation.max(initial=0))


MEASURED: Mapping[str, Callable[[np.ndarray], float]] = {
    WHITE_INPUTS.name: distance_from_white,
    UNCORRELATED_INPUTS.name: largest_correlation,
}


def require_moment(covariance: Any, assumptions: Iterable[Assumption], theory: str) -> None:
    """Raise `InputError` if a second moment violates the assumptions of a theory; warn if the violation is slight.

    Args:
        covariance: E[x xᵀ], shape (d, d).
        assumptions: Assumptions of the theory; only those about the second moment are checked.
        theory: Name of the theory, for messages.

    Raises:
        InputError: If the matrix is not a covariance, or violates an assumption beyond `Assumption.almost`.

    Example:
        >>> require_moment(np.diag([1.0, 3.0]), [WHITE_INPUTS], "balanced.gram")
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: balanced.gram assumes white inputs, but the deviation is 0.5 (largest deviation ...
    """
    moment = require_covariance("covariance", covariance)
    for each in assumptions:
        if each.name in MEASURED:
            _require_near(MEASURED[each.name](moment), each, f"{theory} assumes {each.name}", each.measure, each.remedy)
    if WHITE_INPUTS in assumptions:
        power = float(np.trace(moment)) / len(moment)
        remedy = f"divide the inputs by {power**0.5:.4g}, or whiten them with task.whitened()"
        _require_near(abs(power - 1), WHITE_INPUTS, f"{theory} assumes inputs of unit power", f"{power:.4g}", remedy)


def _require_near(value: float, assumption: Assumption, assumed: str, measure: str, remedy: str) -> None:
    problem = f"{assumed}, but the deviation is {value:.3g} ({measure})"
    require(value <= assumption.almost, problem, argument="covariance", value=value, remedy=remedy)
    if value > assumption.limit:
        warnings.warn(f"{problem}: {assumption.growth}", stacklevel=5)  # the caller of the public function
