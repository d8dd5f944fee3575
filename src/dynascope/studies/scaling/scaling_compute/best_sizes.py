"""The best model size, interpolated between the trained sizes."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

__all__ = ["best_sizes"]

_PLACES = 20_001  # grid points from the smallest to the largest model


def best_sizes(neurons: np.ndarray, losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Minimise a cubic spline of ln L in ln N; return the best number of neurons and the lowest loss."""
    places = np.log(np.geomspace(neurons[0], neurons[-1], _PLACES))
    curves = CubicSpline(np.log(neurons), np.log(losses), axis=-1)(places)
    return np.exp(places[curves.argmin(axis=-1)]), np.exp(curves.min(axis=-1))
