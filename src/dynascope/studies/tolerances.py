"""Tolerances, as predictions carry them: of curves that are known exactly, and of what is predicted in a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

__all__ = ["curve_tolerance", "exact", "limit_tolerances", "with_limits"]

_EXACT = "the theory is exact, and the solver keeps each step within 1e-10"


def limit_tolerances(
    corrections: Mapping[str, tuple[np.ndarray, np.ndarray]], slack: float, reason: str
) -> dict[str, Any]:
    """Attributes of a prediction by which quantities may be as far from their limits as is known, and no farther.

    Args:
        corrections: For each quantity its limits, and by how much its exact values differ from them.
        slack: What is added for the error of the measurement.
        reason: Why these tolerances.

    Example:
        >>> told = limit_tolerances({"slope": (np.array([3.0, 4.0]), np.array([0.0, 0.3]))}, 0.1, "finite width")
        >>> round(told["slope_tolerance"], 3), round(told["slope_maximum_tolerance"], 3)
        (0.08, 0.1)
    """
    said: dict[str, Any] = {}
    for name, (limits, off) in corrections.items():
        said[f"{name}_tolerance"] = float((np.linalg.norm(off) + slack) / np.linalg.norm(limits))
        said[f"{name}_maximum_tolerance"] = float((np.abs(off).max() + slack) / np.abs(limits).max())
        said |= {f"{name}{end}_tolerance_reason": reason for end in ("", "_maximum")}
    return said


def curve_tolerance(**limits: tuple[float, str]) -> dict[str, tuple[float, str]]:
    """The same limit for the error of a curve as a whole and for its worst place, as `tolerance` wants them.

    Args:
        **limits: For each curve, the error below which theory and experiment agree, and the reason for that number.

    Returns:
        The limits by name, and by name with `_maximum`.

    Example:
        >>> list(curve_tolerance(loss=(1e-6, "the theory is exact")))
        ['loss', 'loss_maximum']
    """
    return {name + end: limit for name, limit in limits.items() for end in ("", "_maximum")}


def with_limits(predicted: xr.Dataset, limits: Mapping[str, tuple[float, str]]) -> xr.Dataset:
    """The prediction with such limits attached."""
    reasons = {f"{name}_tolerance_reason": reason for name, (_, reason) in limits.items()}
    return predicted.assign_attrs({f"{name}_tolerance": value for name, (value, _) in limits.items()} | reasons)


def exact(*names: str, error: float = 1e-6, reason: str = _EXACT) -> dict[str, tuple[float, str]]:
    """Tolerances of curves that a theory gives exactly, as a whole and at their worst place.

    Args:
        *names: The curves.
        error: The error below which both agree.
        reason: Why that number.

    Example:
        >>> list(exact("loss"))
        ['loss', 'loss_maximum']
    """
    return curve_tolerance(**dict.fromkeys(names, (error, reason)))
