"""Random maps and covariances whose strengths and variances are given, and tasks that are made of random maps."""

from __future__ import annotations

import dataclasses

import numpy as np

from dynascope.tasks.gaussian import regression
from dynascope.tasks.task import Task

__all__ = ["covariance", "orthonormal", "random_map", "relu_teacher", "rotation", "whitened"]


def orthonormal(draw: np.random.Generator, dimension: int, columns: int | None = None) -> np.ndarray:
    """Random orthonormal columns, shape (dimension, columns); a basis if their number is not said."""
    return np.linalg.qr(draw.normal(size=(dimension, dimension if columns is None else columns)))[0]


def rotation(draw: np.random.Generator, dimension: int) -> np.ndarray:
    """A random orthogonal matrix of determinant one."""
    turn = orthonormal(draw, dimension)
    turn[:, 0] *= np.sign(np.linalg.det(turn))
    return turn


def random_map(draw: np.random.Generator, inputs: int, outputs: int, strengths: np.ndarray) -> np.ndarray:
    """U diag(s) Vᵀ, shape (inputs, outputs), between random directions that are turned but not mirrored.

    Balanced layers, λ = 0, cannot change the sign of a determinant, so square maps of one sign can be learned in turn.
    """
    left, right = (rotation(draw, dimension)[:, : len(strengths)] for dimension in (inputs, outputs))
    return left * strengths @ right.T


def covariance(draw: np.random.Generator, dimension: int, condition: float) -> np.ndarray:
    """A randomly turned covariance of variances from 1 to 1/condition, spaced geometrically."""
    turn = orthonormal(draw, dimension)
    return (turn * np.geomspace(1.0, 1.0 / condition, dimension)) @ turn.T


def whitened(target_map: np.ndarray, name: str) -> Task:
    """Inputs with E[x xᵀ] = I exactly, and targets x Σ."""
    inputs = len(target_map)
    drawn = regression(samples=4 * inputs, input_covariance=[1.0] * inputs, target_map=target_map, exact_moments=True)
    return dataclasses.replace(drawn, name=name)


def relu_teacher(draw: np.random.Generator, samples: int, inputs: int, neurons: int, outputs: int) -> Task:
    """Gaussian inputs, and targets of a random ReLU network."""
    x = draw.normal(size=(samples, inputs))
    hidden = np.maximum(x @ draw.normal(size=(inputs, neurons)) / inputs**0.5, 0)
    targets = hidden @ draw.normal(size=(neurons, outputs)) / neurons**0.5
    made = f"Gaussian inputs; the targets are a random ReLU network of {neurons} neurons."
    return Task(x, targets, name="ReLU teacher", description=(made,))
