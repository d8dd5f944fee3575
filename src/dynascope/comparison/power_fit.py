"""Exponents of power laws, fitted on double logarithmic axes."""

from __future__ import annotations

import numpy as np

__all__ = ["fitted_exponent", "measured_exponents"]


def fitted_exponent(sizes: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Slope of log(value) against log(size), and its standard error."""
    x, y = np.log(sizes), np.log(values)
    x, y = x - x.mean(), y - y.mean()
    slope = x @ y / (x @ x)
    return float(slope), float(np.sqrt(np.sum((y - slope * x) ** 2) / (len(x) - 2) / (x @ x)))


def measured_exponents(name: str, sizes: np.ndarray, values: np.ndarray) -> dict[str, tuple[str, np.ndarray]]:
    """`<name>_exponent` over architectures and its standard error, from values of shape (architectures, sizes)."""
    exponents, errors = np.array([fitted_exponent(sizes, each) for each in values]).T
    return {f"{name}_exponent": ("architecture", exponents), f"{name}_exponent_error": ("architecture", errors)}
