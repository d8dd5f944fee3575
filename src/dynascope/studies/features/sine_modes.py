"""Linear models on the sines √2 sin(2πkx) of a point x on a line."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np
import xarray as xr

from dynascope.networks import MLP
from dynascope.observation import observe
from dynascope.tasks import Task

__all__ = ["centres", "sines", "train_from_zero"]


def sines(x: np.ndarray, modes: int) -> np.ndarray:
    """√2 sin(2πkx) for k = 1, …, p, orthonormal on the unit interval, (n, p)."""
    return np.sqrt(2) * np.sin(2 * np.pi * np.outer(x, np.arange(1, modes + 1)))


def centres(count: int) -> np.ndarray:
    """The middles of equal parts of the unit interval."""
    return (np.arange(count) + 0.5) / count


def train_from_zero(features: np.ndarray, labels: np.ndarray, times: np.ndarray, **options: Any) -> xr.Dataset:
    """The gradient flow of a linear model on features (n, p), with labels (n, c), from weights of zero.

    Returns:
        The record of the flow with `weights` over time, target and feature.
    """
    model = MLP((features.shape[1], labels.shape[1]), activation="linear", bias=False)
    run = observe(
        Task(features, labels, name="points"),
        eqx.tree_at(lambda model: model.weights[0], model, np.zeros_like(model.weights[0])),
        duration=float(times[-1]),
        save=times,
        probes=[_weights],
        **options,
    )
    return run.transpose("time", "target", "feature")


def _weights(model: MLP) -> dict[str, tuple[tuple[str, ...], Any]]:
    return {"weights": (("target", "feature"), model.weights[0].T)}
