"""Training of the extended multilinear model, in which a skill is a sum of many features."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np

from dynascope.tasks.task import Task
from dynascope.training.descend import Descent, descend

__all__ = ["train_extended", "train_with_features"]

_START = 1e-4  # scale of the initial weights


def train_extended(
    inputs: np.ndarray, targets: np.ndarray, weights: np.ndarray, *, target_scale: float, steps: int
) -> np.ndarray:
    """Train f = Σ_k a_k Σ_l B_kl e_kl by gradient descent from small initial weights.

    Args:
        inputs: The features e of each sample, grouped by skill, shape (n, skills · features).
        targets: Shape (n,).
        weights: Initial B before scaling, of order one, shape (skills, features).
        target_scale: S, which sets the learning rate.
        steps: Number of gradient-descent steps.

    Returns:
        The final a_k B_kl, shape (skills, features).
    """
    run = descend(
        Task(inputs, targets[:, None]),
        _ExtendedMultilinear(np.ones(len(weights)), weights / np.sqrt(weights.shape[1])),
        Descent(learning_rate=0.1 / target_scale, steps=steps, save=[steps], statistics=_COEFFICIENTS),
        scale=_START * np.sqrt(target_scale),
    )
    return run["coefficients"].to_numpy()[-1]


def train_with_features(
    features: np.ndarray,
    sign: np.ndarray,
    count: int,
    frequencies: np.ndarray,
    weights: np.ndarray,
    *,
    target_scale: float,
    steps: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Train the model on all inputs, using the first N features over all skills.

    Args:
        features: Values of the features of each skill, shape (skills, n, N_c).
        sign: The skill, ±1 on the n inputs.
        count: N.
        frequencies: P(k).
        weights: Initial B before scaling, shape (skills, N_c).
        target_scale: S.
        steps: Number of gradient-descent steps.

    Returns:
        Strength of each skill relative to S, and its loss relative to ½ S².
    """
    skills, rows, each = features.shape
    present = np.arange(skills * each).reshape(skills, each) < count
    inputs, shares = features * present[:, None], np.sqrt(skills * frequencies)
    blocks = np.zeros((skills, rows, skills, each))
    blocks[np.arange(skills), :, np.arange(skills)] = shares[:, None, None] * inputs
    # Every skill has the same number of rows, each scaled by the square root of its weight in the loss.
    samples, targets = blocks.reshape(-1, skills * each), target_scale * np.outer(shares, sign).ravel()
    coefficients = train_extended(samples, targets, weights, target_scale=target_scale, steps=steps)
    values = np.einsum("knl,kl->kn", inputs, coefficients) / target_scale
    return np.mean(values * sign, axis=1), np.mean((values - sign) ** 2, axis=1)


class _ExtendedMultilinear(eqx.Module):
    gains: Any
    weights: Any

    def __call__(self, x: Any) -> Any:
        return (x @ _coefficients(self).reshape(-1))[..., None]


def _coefficients(network: Any) -> Any:
    return network.gains[:, None] * network.weights


_COEFFICIENTS = {"coefficients": (_coefficients, ("skill", "feature"))}
