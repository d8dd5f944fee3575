"""Minimum-norm interpolants of skills that are sums of many features."""

from __future__ import annotations

import numpy as np

__all__ = ["least_norm_strength", "mean_interpolants"]


def mean_interpolants(counts: np.ndarray, features: int, draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Mean strength of minimum-norm interpolants of d samples of each skill, and their mean loss relative to ½ S².

    Args:
        counts: Number d of samples of each skill in each training set, shape (sets, skills).
        features: D_c; the first feature is the skill, and the others are Gaussian.
        draw: Random generator of the samples.
    """
    strength = np.where(counts >= features, 1.0, 0.0)
    loss = 1 - strength
    for count in np.unique(counts[(counts > 0) & (counts < features)]):
        rows = counts == count
        # Each sample times its target; the first feature is the skill.
        inputs = draw.normal(size=(rows.sum(), count, features))
        inputs[..., 0] = 1.0
        weights = np.linalg.solve(inputs @ np.swapaxes(inputs, 1, 2), np.ones((len(inputs), count, 1)))
        found = np.sum(weights * inputs, axis=1)
        strength[rows] = found[:, 0]
        loss[rows] = (1 - found[:, 0]) ** 2 + np.sum(found[:, 1:] ** 2, axis=1)
    return strength.mean(axis=0), loss.mean(axis=0)


def least_norm_strength(inputs: np.ndarray, targets: np.ndarray, skills: int) -> np.ndarray:
    """The strength of each skill in the minimum-norm interpolant, relative to the size of the targets."""
    return (np.linalg.pinv(inputs) @ targets).reshape(skills, -1)[:, 0] / abs(targets[0])
