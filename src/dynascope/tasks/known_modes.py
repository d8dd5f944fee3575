"""Regression tasks with known modes: examples with given moments, and random tasks with well-separated strengths."""

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
# The order of the strengths σ differs from the order of σ/√variance, which selects rank-one maps.
_STRENGTHS, _VARIANCES = (2.0, 1.5, 0.6), (4.0, 1.0, 0.5)
_UNEXPLAINED = 0.1  # power of the targets that no input explains
# Three samples of four inputs, for which an input is first learned and later dropped.
_INPUTS = ((1.0, -0.75, -0.15, -0.43), (0.85, 0.94, -0.97, -0.96), (-0.99, 0.96, 0.7, -0.15))
_TARGETS = (-0.39, -1.15, 1.98)


def moments_regression(kind: Moments, size: int | None, seed: int) -> Task:
    """Data with exact second moments: the 3 × 3 example if `size` is None, else `size` random modes."""
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
    """Σyx and Σxx of the example with three inputs and outputs."""
    if kind == "commuting":
        return np.diag(_STRENGTHS), np.diag(_VARIANCES)
    return np.array(_CROSS), np.array(_POWER) if kind == "general" else np.eye(3)


def random_moments(kind: Moments, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random Σyx and Σxx, shape (size, size); each mode is half as strong as the previous one."""
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
    """Independent inputs with variances i^−(exponent + 1), and targets Σᵢ target · xᵢ."""
    power, target_map = np.diag(np.arange(1.0, modes + 1) ** -(exponent + 1)), np.full((modes, 1), target)
    return regression(samples=samples, input_covariance=power, target_map=target_map, seed=seed, exact_moments=True)


def dropped_input() -> Task:
    """Three samples of four inputs, one of which a diagonal network first learns and later drops."""
    description = ("Three samples of four inputs.",)
    return Task(np.array(_INPUTS), np.array(_TARGETS)[:, None], name="example", description=description)


def halving_inputs(samples: int, inputs: int, seed: int) -> Task:
    """Independent inputs with target weights ±1, ±½, ±¼, … in random order, so that the jumps are well separated."""
    draw = np.random.default_rng(seed)
    target_map = draw.permutation(_halving(draw, inputs))[:, None]
    return regression(samples=samples, input_covariance=np.ones(inputs), target_map=target_map, seed=seed)


def sparse_regression(samples: int, inputs: int, relevant: int, *, correlation: float, noise: float, seed: int) -> Task:
    """Inputs with correlations ρ^|i−j|, and a target with weights ±1, ±½, ±¼, … on randomly chosen inputs."""
    distance = np.abs(np.subtract.outer(np.arange(inputs), np.arange(inputs)))
    power = np.where(distance == 0, 1.0, correlation**distance)
    draw, target_map = np.random.default_rng(seed), np.zeros((inputs, 1))
    strengths = _halving(draw, relevant)
    target_map[draw.permutation(inputs)[:relevant], 0] = strengths
    return regression(samples=samples, input_covariance=power, target_map=target_map, noise=noise, seed=seed)


def line_regression(slope: float, noise: float, *, samples: int, dimension: int, seed: int) -> Task:
    """Inputs along a random line, and targets with a given slope along the line and noise proportional to the slope."""
    draw = np.random.default_rng(seed)
    direction, along = draw.normal(size=dimension), draw.normal(size=samples)
    inputs = np.outer(along, direction / np.linalg.norm(direction))
    # The sign convention makes the result independent of the orientation of the line.
    sign = np.sign(direction[np.argmax(np.abs(direction))])
    targets = slope * (sign * along + noise * draw.normal(size=samples))
    description = (
        f"{samples} Gaussian inputs along a line in {dimension} dimensions.",
        "Targets are linear in the inputs, with noise.",
    )
    return Task(inputs, targets[:, None], name="inputs on a line", description=description)


def halving_modes(*, samples: int, inputs: int, outputs: int, condition: float, seed: int) -> Task:
    """Correlated inputs, and a map with random singular vectors and singular values 1, ½, ¼, …."""
    draw = np.random.default_rng(seed)
    input_covariance = covariance(draw, inputs, condition)
    strengths = 2.0 ** -np.arange(min(inputs, outputs))
    rows, columns = (orthonormal(draw, each, len(strengths)) for each in (inputs, outputs))
    target_map = (rows * strengths) @ columns.T
    return regression(samples=samples, input_covariance=input_covariance, target_map=target_map, seed=seed)


def neuron_regression(target: np.ndarray, axes: np.ndarray, *, samples: int, least_variance: float, seed: int) -> Task:
    """Targets β·x for inputs in the span of `axes`, with variances decreasing geometrically to `least_variance`."""
    variances = np.geomspace(1.0, least_variance, axes.shape[1])
    target_map = axes.T @ target
    task = regression(samples=samples, input_covariance=variances, target_map=target_map, seed=seed, exact_moments=True)
    return Task(task.inputs @ axes.T, task.targets, name=task.name, description=task.description)


def unit_regression(inputs: int, outputs: int, *, samples: int, least_variance: float, seed: int) -> Task:
    """A random target map with spectral norm one, and inputs with variances decreasing to `least_variance`."""
    target = np.random.default_rng(seed).normal(size=(inputs, outputs))
    variances, unit = np.geomspace(1.0, least_variance, inputs), target / np.linalg.norm(target, 2)
    return regression(samples=samples, input_covariance=variances, target_map=unit, seed=seed, exact_moments=True)


def unit_maps(axes: np.ndarray, alignment: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random initial and target vectors with unit norm and a given cosine; the target lies in the span of `axes`."""
    draw = np.random.default_rng(seed)
    target = axes @ (axes.T @ draw.normal(size=len(axes)))
    target /= np.linalg.norm(target)
    across = draw.normal(size=len(axes))
    across -= across @ target * target
    across /= np.linalg.norm(across)
    return alignment * target + np.sqrt(1 - alignment**2) * across, target


def relu_data(kind: Literal["plane", "orthogonal", "general"], samples: int, seed: int) -> Task:
    """Data for ReLU networks: random points in the plane, orthogonal inputs, or a teacher with two ReLU neurons.

    The kind "general" (the teacher) has ten times the given number of samples.
    """
    draw = np.random.default_rng(seed)
    description = "Orthogonal inputs; positive targets and weaker negative targets."
    if kind == "plane":
        description = "Gaussian inputs in the plane, and Gaussian targets."
        inputs, targets = draw.normal(size=(samples, 2)), draw.normal(size=samples)
    elif kind == "general":
        description = "Gaussian inputs in three dimensions; the targets are two ReLU neurons of opposite sign."
        inputs = draw.normal(size=(10 * samples, 3))
        targets = np.maximum(inputs @ orthonormal(draw, 3)[:, :2], 0) @ [2.0, -1.0]
    else:
        axes = orthonormal(draw, samples)
        inputs = np.sqrt(samples) * draw.uniform(0.7, 1.4, samples)[:, None] * axes
        # The weaker sign is learned so much later that a plateau appears.
        targets = draw.uniform(0.7, 1.3, samples) * np.where(np.arange(samples) % 2, -0.5, 1.0)
    return Task(inputs, targets[:, None], name=f"{kind} data", description=(f"{len(inputs)} samples.", description))


def _halving(draw: np.random.Generator, number: int) -> np.ndarray:
    """The strengths ±1, ±½, ±¼, … with random signs."""
    return draw.choice([-1.0, 1.0], number) * 2.0 ** -np.arange(number)
