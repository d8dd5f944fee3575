"""Training of the model in which a skill is spread over many features."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np

from dynascope.flows.steps.descend import descend
from dynascope.tasks.task import Task

__all__ = ["train_extended"]

_START = 1e-4  # scale of the weights at the start


def train_extended(
    inputs: np.ndarray, targets: np.ndarray, weights: np.ndarray, *, target_scale: float, steps: int
) -> np.ndarray:
    """Train f = Σ_k a_k Σ_l B_kl e_kl by gradient descent from a small start.

    Args:
        inputs: The features e of each sample, those of one skill after the other, shape (n, skills · features).
        targets: Shape (n,).
        weights: B at the start up to its scale, of the size of one, shape (skills, features).
        target_scale: S, by which the learning rate is chosen.
        steps: Steps of descent.

    Returns:
        a_k B_kl at the end, shape (skills, features).
    """
    run = descend(
        _ExtendedMultilinear(np.ones(len(weights)), weights / np.sqrt(weights.shape[1])),
        Task(inputs, targets[:, None]),
        steps=steps,
        learning_rate=0.1 / target_scale,
        scale=_START * np.sqrt(target_scale),
        record_steps=[steps],
        statistics=_COEFFICIENTS,
    )
    return run["coefficients"].to_numpy()[-1]


class _ExtendedMultilinear(eqx.Module):
    gains: Any
    weights: Any

    def __call__(self, x: Any) -> Any:
        return (x @ _coefficients(self).reshape(-1))[..., None]


def _coefficients(network: Any) -> Any:
    return network.gains[:, None] * network.weights


_COEFFICIENTS = {"coefficients": (_coefficients, ("skill", "feature"))}
