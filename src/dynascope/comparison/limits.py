"""Tolerances of what is observed at finite size and predicted in a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["limit_tolerances"]


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
