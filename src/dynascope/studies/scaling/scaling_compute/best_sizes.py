"""The size of model that does best, between those that were trained."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

__all__ = ["best_sizes"]

_PLACES = 20_001  # between the models, at which the best one is looked for


def best_sizes(neurons: np.ndarray, losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Neurons of least loss, and that loss, along a spline through ln L over ln N of the models."""
    places = np.log(np.geomspace(neurons[0], neurons[-1], _PLACES))
    curves = CubicSpline(np.log(neurons), np.log(losses), axis=-1)(places)
    return np.exp(places[curves.argmin(axis=-1)]), np.exp(curves.min(axis=-1))
