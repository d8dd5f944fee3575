"""Regressions whose modes are known: examples with given moments, and random ones of well separated strengths."""

from __future__ import annotations

from typing import Literal

import numpy as np

from dynascope.tasks.gaussian import regression
from dynascope.tasks.random_maps import covariance, orthonormal
from dynascope.tasks.task import Task

__all__ = [
    "Moments",
    "dropped_input",
    "example_moments",
    "halving_inputs",
    "halving_modes",
    "line_regression",
    "moments_regression",
    "neuron_regression",
    "power_law_modes",
    "random_moments",
    "relu_data",
    "sparse_regression",
    "unit_maps",
    "unit_regression",
]

Moments = Literal["whitened", "general", "commuting"]

_CROSS = ((2.0, 0.3, -0.1), (0.2, 1.2, 0.25), (0.1, -0.3, 0.7))
_POWER = ((1.0, 0.3, 0.1), (0.3, 1.5, -0.2), (0.1, -0.2, 0.6))
# The strengths σ of independent modes are in another order than σ/√(variance), by which rank-one maps are chosen.
_STRENGTHS, _VARIANCES = (2.0, 1.5, 0.6), (4.0, 1.0, 0.5)
_UNEXPLAINED = 0.1  # power of the targets that no input explains
# Three samples of four inputs on which an input is dropped again while another is learned.
_INPUTS = ((1.0, -0.75, -0.15, -0.43), (0.85, 0.94, -0.97, -0.96), (-0.99, 0.96, 0.7, -0.15))
_TARGETS = (-0.39, -1.15, 1.98)


def moments_regression(kind: Moments, size: int | None, seed: int) -> Task:
    """Data with exactly these moments: the example of three outputs and inputs, or random ones of so many of both."""
    cross, power = example_moments(kind) if size is None else random_moments(kind, size, seed)
    independent = size is None and kind == "commuting"
    return regression(
        samples=4 * len(power),
        input_covariance=power,
        target_map=np.linalg.solve(power, cross.T),
        noise=0.0 if independent else float(np.sqrt(_UNEXPLAINED / len(cross))),
        seed=seed,
        exact_moments=True,
    )


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


def power_law_modes(modes: int, exponent: float, target: float, *, samples: int, seed: int) -> Task:
    """Independent inputs of the variances i^−(exponent + 1), and targets Σ target · xᵢ."""
    power, target_map = np.diag(np.arange(1.0, modes + 1) ** -(exponent + 1)), np.full((modes, 1), target)
    return regression(samples=samples, input_covariance=power, target_map=target_map, seed=seed, exact_moments=True)


def dropped_input() -> Task:
    """Three samples of four inputs, of which one is learned by a diagonal network and dropped again."""
    made = ("Three samples of four inputs.",)
    return Task(np.array(_INPUTS), np.array(_TARGETS)[:, None], name="example", description=made)


def halving_inputs(samples: int, inputs: int, seed: int) -> Task:
    """Independent inputs that matter half as much each as another, so that their jumps can be told apart."""
    draw = np.random.default_rng(seed)
    target_map = draw.permutation(_halving(draw, inputs))[:, None]
    return regression(samples=samples, input_covariance=np.ones(inputs), target_map=target_map, seed=seed)


def sparse_regression(samples: int, inputs: int, relevant: int, *, correlation: float, noise: float, seed: int) -> Task:
    """Inputs with the correlations ρ^|i−j|, and a target that depends on some, each half as much as another."""
    distance = np.abs(np.subtract.outer(np.arange(inputs), np.arange(inputs)))
    power = np.where(distance == 0, 1.0, correlation**distance)
    draw, target_map = np.random.default_rng(seed), np.zeros((inputs, 1))
    strengths = _halving(draw, relevant)
    target_map[draw.permutation(inputs)[:relevant], 0] = strengths
    return regression(samples=samples, input_covariance=power, target_map=target_map, noise=noise, seed=seed)


def line_regression(slope: float, noise: float, *, samples: int, dimension: int, seed: int) -> Task:
    """Inputs along a random line, and targets of this slope along it, with noise relative to the slope."""
    draw = np.random.default_rng(seed)
    direction, along = draw.normal(size=dimension), draw.normal(size=samples)
    inputs = np.outer(along, direction / np.linalg.norm(direction))
    # Like the loss, the reader of the line does not know which way it points.
    sign = np.sign(direction[np.argmax(np.abs(direction))])
    targets = slope * (sign * along + noise * draw.normal(size=samples))
    made = (
        f"{samples} Gaussian inputs along a line in {dimension} dimensions.",
        "Targets are linear in them, with noise.",
    )
    return Task(inputs, targets[:, None], name="inputs on a line", description=made)


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


def unit_regression(inputs: int, outputs: int, *, samples: int, least_variance: float, seed: int) -> Task:
    """A random map of norm one, and inputs with variances that fall from 1 to the least."""
    target = np.random.default_rng(seed).normal(size=(inputs, outputs))
    variances, unit = np.geomspace(1.0, least_variance, inputs), target / np.linalg.norm(target, 2)
    return regression(samples=samples, input_covariance=variances, target_map=unit, seed=seed, exact_moments=True)


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


def _halving(draw: np.random.Generator, number: int) -> np.ndarray:
    """Strengths of either sign."""
    return draw.choice([-1.0, 1.0], number) * 2.0 ** -np.arange(number)
