"""Random maps and covariances with given singular values and variances, and tasks based on random maps."""

from __future__ import annotations

import dataclasses

import numpy as np

from dynascope.tasks.gaussian import regression
from dynascope.tasks.task import Task

__all__ = ["covariance", "orthonormal", "random_map", "relu_teacher", "rotation", "whitened"]


def orthonormal(draw: np.random.Generator, dimension: int, columns: int | None = None) -> np.ndarray:
    """Random orthonormal columns, shape (dimension, columns); a full basis if `columns` is None."""
    return np.linalg.qr(draw.normal(size=(dimension, dimension if columns is None else columns)))[0]


def rotation(draw: np.random.Generator, dimension: int) -> np.ndarray:
    """A random orthogonal matrix with determinant one."""
    basis = orthonormal(draw, dimension)
    basis[:, 0] *= np.sign(np.linalg.det(basis))
    return basis


def random_map(draw: np.random.Generator, inputs: int, outputs: int, strengths: np.ndarray) -> np.ndarray:
    """A random map U diag(s) Vᵀ, shape (inputs, outputs), with singular vectors from random rotations.

    Gradient flow of balanced layers (λ = 0) cannot change the sign of the determinant. All square maps from this
    function have determinants of the same sign, so a network can learn them one after the other.
    """
    left, right = (rotation(draw, dimension)[:, : len(strengths)] for dimension in (inputs, outputs))
    return left * strengths @ right.T


def covariance(draw: np.random.Generator, dimension: int, condition: float) -> np.ndarray:
    """A covariance with random axes and geometrically spaced variances from 1 to 1/condition."""
    axes = orthonormal(draw, dimension)
    return (axes * np.geomspace(1.0, 1.0 / condition, dimension)) @ axes.T


def whitened(target_map: np.ndarray, name: str) -> Task:
    """A task with exactly whitened inputs, E[x xᵀ] = I, and targets x Σ."""
    inputs = len(target_map)
    drawn = regression(samples=4 * inputs, input_covariance=[1.0] * inputs, target_map=target_map, exact_moments=True)
    return dataclasses.replace(drawn, name=name)


def relu_teacher(draw: np.random.Generator, samples: int, inputs: int, neurons: int, outputs: int) -> Task:
    """A task with Gaussian inputs and the outputs of a random ReLU network as targets."""
    x = draw.normal(size=(samples, inputs))
    hidden = np.maximum(x @ draw.normal(size=(inputs, neurons)) / inputs**0.5, 0)
    targets = hidden @ draw.normal(size=(neurons, outputs)) / neurons**0.5
    description = f"Gaussian inputs; the targets are the outputs of a random ReLU network with {neurons} neurons."
    return Task(x, targets, name="ReLU teacher", description=(description,))
