"""Regressions whose modes are known: examples with given moments, and random ones of well separated strengths."""

from __future__ import annotations

from typing import Literal

import numpy as np

from dynascope.tasks.gaussian import regression
from dynascope.tasks.random_maps import covariance, orthonormal
from dynascope.tasks.task import Task

__all__ = [
    "Moments",
    "example_moments",
    "halving_modes",
    "neuron_regression",
    "random_moments",
    "relu_data",
    "unit_maps",
]

Moments = Literal["whitened", "general", "commuting"]

_CROSS = ((2.0, 0.3, -0.1), (0.2, 1.2, 0.25), (0.1, -0.3, 0.7))
_POWER = ((1.0, 0.3, 0.1), (0.3, 1.5, -0.2), (0.1, -0.2, 0.6))
# The strengths σ of independent modes are in another order than σ/√(variance), by which rank-one maps are chosen.
_STRENGTHS, _VARIANCES = (2.0, 1.5, 0.6), (4.0, 1.0, 0.5)


def example_moments(kind: Moments) -> tuple[np.ndarray, np.ndarray]:
    """Σyx and Σxx of three outputs and inputs."""
    if kind == "commuting":
        return np.diag(_STRENGTHS), np.diag(_VARIANCES)
    return np.array(_CROSS), np.array(_POWER) if kind == "general" else np.eye(3)


def random_moments(kind: Moments, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Σyx and Σxx of so many outputs and inputs; each mode is half as strong as the one before."""
    draw = np.random.default_rng(seed)
    left, right, axes = (orthonormal(draw, size) for _ in range(3))
    cross = (left * 2.0 ** (1 - np.arange(size))) @ right.T
    variances = draw.permutation(np.geomspace(0.5, 2.0, size))
    if kind == "whitened":
        return cross, np.eye(size)
    axes = right if kind == "commuting" else axes
    power = (axes * variances) @ axes.T
    return cross, (power + power.T) / 2


def halving_modes(*, samples: int, inputs: int, outputs: int, condition: float, seed: int) -> Task:
    """Correlated inputs, and a map of random directions each of which is half as strong as the one before."""
    draw = np.random.default_rng(seed)
    turned = covariance(draw, inputs, condition)
    strengths = 2.0 ** -np.arange(min(inputs, outputs))
    rows, columns = (orthonormal(draw, each, len(strengths)) for each in (inputs, outputs))
    return regression(samples=samples, input_covariance=turned, target_map=(rows * strengths) @ columns.T, seed=seed)


def neuron_regression(target: np.ndarray, axes: np.ndarray, *, samples: int, least_variance: float, seed: int) -> Task:
    """Targets β·x for inputs that vary along the columns of `axes`, with variances that fall from 1 to the least."""
    variances = np.geomspace(1.0, least_variance, axes.shape[1])
    target_map = axes.T @ target
    task = regression(samples=samples, input_covariance=variances, target_map=target_map, seed=seed, exact_moments=True)
    return Task(task.inputs @ axes.T, task.targets, name=task.name, description=task.description)


def unit_maps(axes: np.ndarray, alignment: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A random start and target of unit length, with this cosine between them; the target is within the axes."""
    draw = np.random.default_rng(seed)
    target = axes @ (axes.T @ draw.normal(size=len(axes)))
    target /= np.linalg.norm(target)
    across = draw.normal(size=len(axes))
    across -= across @ target * target
    across /= np.linalg.norm(across)
    return alignment * target + np.sqrt(1 - alignment**2) * across, target


def relu_data(kind: Literal["plane", "orthogonal", "general"], samples: int, seed: int) -> Task:
    """Gaussian inputs and targets in the plane; orthogonal inputs; or ten times as many samples of two ReLU neurons."""
    draw = np.random.default_rng(seed)
    made = "Orthogonal inputs, and targets of both signs, the negative ones weaker."
    if kind == "plane":
        made = "Gaussian inputs in the plane, and Gaussian targets."
        inputs, targets = draw.normal(size=(samples, 2)), draw.normal(size=samples)
    elif kind == "general":
        made = "Gaussian inputs in three dimensions; targets are two ReLU neurons of opposite sign."
        inputs = draw.normal(size=(10 * samples, 3))
        targets = np.maximum(inputs @ orthonormal(draw, 3)[:, :2], 0) @ [2.0, -1.0]
    else:
        turned = orthonormal(draw, samples)
        inputs = np.sqrt(samples) * draw.uniform(0.7, 1.4, samples)[:, None] * turned
        # The weaker sign comes later by far enough for a plateau.
        targets = draw.uniform(0.7, 1.3, samples) * np.where(np.arange(samples) % 2, -0.5, 1.0)
    return Task(inputs, targets[:, None], name=f"{kind} data", description=(f"{len(inputs)} samples.", made))
