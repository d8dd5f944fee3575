"""The model in which a skill is spread over many features: trained, and its interpolants of least norm."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np

from dynascope.flows import descend
from dynascope.tasks import Task

__all__ = ["least_norm_strength", "mean_interpolants", "train_extended"]

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


def mean_interpolants(counts: np.ndarray, features: int, draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Mean strength, and loss over ½ S², of the interpolants of least norm of d samples of each skill.

    Args:
        counts: d of each skill in each training set, shape (sets, skills).
        features: D_c, which are Gaussian but for the first, the skill itself.
        draw: Where they are drawn from.
    """
    strength = np.where(counts >= features, 1.0, 0.0)
    loss = 1 - strength
    for count in np.unique(counts[(counts > 0) & (counts < features)]):
        rows = counts == count
        # Each sample times its target, of which the skill itself is the first feature.
        inputs = draw.normal(size=(rows.sum(), count, features))
        inputs[..., 0] = 1.0
        weights = np.linalg.solve(inputs @ np.swapaxes(inputs, 1, 2), np.ones((len(inputs), count, 1)))
        found = np.sum(weights * inputs, axis=1)
        strength[rows] = found[:, 0]
        loss[rows] = (1 - found[:, 0]) ** 2 + np.sum(found[:, 1:] ** 2, axis=1)
    return strength.mean(axis=0), loss.mean(axis=0)


def least_norm_strength(inputs: np.ndarray, targets: np.ndarray, skills: int) -> np.ndarray:
    """The strength of each skill in the interpolant of least norm, over the scale of the targets."""
    return (np.linalg.pinv(inputs) @ targets).reshape(skills, -1)[:, 0] / abs(targets[0])
