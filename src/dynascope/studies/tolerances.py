"""Tolerances of predictions, for exactly known curves and for quantities that are predicted in a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

__all__ = ["curve_tolerance", "exact", "limit_tolerances", "with_limits"]

_EXACT = "the theory is exact, and the local error of the solver is below 1e-10"


def limit_tolerances(
    corrections: Mapping[str, tuple[np.ndarray, np.ndarray]], slack: float, reason: str
) -> dict[str, Any]:
    """Set tolerances that allow quantities to deviate from their limits by known corrections.

    Args:
        corrections: For each quantity, its limits and the deviations of its exact values from them.
        slack: Additional allowance for the measurement error.
        reason: Reason for these tolerances.

    Returns:
        Attributes of the predicted record.

    Example:
        >>> limits = limit_tolerances({"slope": (np.array([3.0, 4.0]), np.array([0.0, 0.3]))}, 0.1, "finite width")
        >>> round(limits["slope_tolerance"], 3), round(limits["slope_maximum_tolerance"], 3)
        (0.08, 0.1)
    """
    attributes: dict[str, Any] = {}
    for name, (limits, off) in corrections.items():
        attributes[f"{name}_tolerance"] = float((np.linalg.norm(off) + slack) / np.linalg.norm(limits))
        attributes[f"{name}_maximum_tolerance"] = float((np.abs(off).max() + slack) / np.abs(limits).max())
        attributes |= {f"{name}{end}_tolerance_reason": reason for end in ("", "_maximum")}
    return attributes


def curve_tolerance(**limits: tuple[float, str]) -> dict[str, tuple[float, str]]:
    """Set one limit for the overall and the largest pointwise error of each curve, in the format of `Study.tolerance`.

    Args:
        **limits: For each curve, the largest error that counts as agreement, and the reason for this limit.

    Returns:
        The limits of the overall errors by name, and of the largest errors by name with the suffix `_maximum`.

    Example:
        >>> list(curve_tolerance(loss=(1e-6, "the theory is exact")))
        ['loss', 'loss_maximum']
    """
    return {name + end: limit for name, limit in limits.items() for end in ("", "_maximum")}


def with_limits(predicted: xr.Dataset, limits: Mapping[str, tuple[float, str]]) -> xr.Dataset:
    """Attach limits to a prediction."""
    reasons = {f"{name}_tolerance_reason": reason for name, (_, reason) in limits.items()}
    return predicted.assign_attrs({f"{name}_tolerance": value for name, (value, _) in limits.items()} | reasons)


def exact(*names: str, error: float = 1e-6, reason: str = _EXACT) -> dict[str, tuple[float, str]]:
    """Set tolerances for the overall and the largest error of curves that are known exactly.

    Args:
        *names: Names of the curves.
        error: The largest error that counts as agreement.
        reason: Reason for this limit.

    Example:
        >>> list(exact("loss"))
        ['loss', 'loss_maximum']
    """
    return curve_tolerance(**dict.fromkeys(names, (error, reason)))
