"""Exponents of power laws, fitted on log–log axes."""

from __future__ import annotations

import numpy as np

__all__ = ["fitted_exponent", "measured_exponents"]


def fitted_exponent(sizes: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """The slope of log(value) against log(size), and its standard error."""
    x, y = np.log(sizes), np.log(values)
    x, y = x - x.mean(), y - y.mean()
    slope = x @ y / (x @ x)
    return float(slope), float(np.sqrt(np.sum((y - slope * x) ** 2) / (len(x) - 2) / (x @ x)))


def measured_exponents(
    name: str, sizes: np.ndarray, values: np.ndarray, *further: str
) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Fit a power law along the last axis; return `<name>_exponent` and its standard error along the other axes."""
    fits = np.apply_along_axis(lambda each: fitted_exponent(sizes, each), -1, values)
    exponent, error = np.moveaxis(fits, -1, 0)
    axes = ("architecture", *further)
    return {f"{name}_exponent": (axes, exponent), f"{name}_exponent_error": (axes, error)}
