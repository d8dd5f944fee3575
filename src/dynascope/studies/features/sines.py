"""Sine modes on the unit interval, and noisy samples of sums of these modes."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

__all__ = ["NoisySines", "Samples", "centres", "points_apart", "sines"]


def sines(x: Float[np.ndarray, " n"], modes: int) -> Float[np.ndarray, "n p"]:
    """The modes √2 sin(2πkx) for k = 1, …, p, orthonormal on the unit interval, shape (n, p).

    Example:
        >>> basis = sines(centres(8), 3)
        >>> np.allclose(basis.T @ basis / 8, np.eye(3))
        True
    """
    return np.sqrt(2) * np.sin(2 * np.pi * np.outer(x, np.arange(1, modes + 1)))


def centres(count: int) -> Float[np.ndarray, " count"]:
    """The centres of equal subintervals of the unit interval.

    Example:
        >>> centres(2).tolist()
        [0.25, 0.75]
    """
    return (np.arange(count) + 0.5) / count


def points_apart(count: int, draw: np.random.Generator) -> Float[np.ndarray, " count"]:
    """Draw points that are well separated from each other and from all mirror images 1 − x.

    Each sine has opposite values at x and 1 − x.

    Example:
        >>> x = points_apart(4, np.random.default_rng(0))
        >>> bool(np.diff(np.sort(np.minimum(x, 1 - x))).min() > 0.05)
        True
    """
    half = (np.arange(count) + draw.uniform(0.2, 0.8, size=count)) / (2 * count)
    return np.where(draw.uniform(size=count) < 0.5, half, 1 - half)


class Samples(NamedTuple):
    """Features and noisy labels of a linear model.

    Attributes:
        features: √ρ_k e_k at random positions, shape (n, p).
        labels: Labels of each target, with independent noise, shape (n, targets).
    """

    features: Float[np.ndarray, "n p"]
    labels: Float[np.ndarray, "n targets"]


@dataclasses.dataclass(frozen=True, eq=False)
class NoisySines:
    """Targets that are sums of sine modes, their noisy samples, and errors of linear models fitted to them.

    Attributes:
        samples: Number n of samples per draw.
        intensity: Intensities ρ_k of the features, shape (p,).
        targets: Coefficients of the targets, shape (targets, p).
        noise_variance: Variance of the label noise.

    Example:
        >>> task = NoisySines(4, np.ones(2), np.eye(2), noise_variance=0.0)
        >>> task.draw(0).labels.shape, task.learned_fraction(np.eye(2) / 2).tolist()
        ((4, 2), [0.5, 0.5])
    """

    samples: int
    intensity: Float[np.ndarray, " p"]
    targets: Float[np.ndarray, "targets p"]
    noise_variance: float

    @property
    def root(self) -> Float[np.ndarray, " p"]:
        """√ρ_k, the factor that converts weights to coefficients."""
        return np.sqrt(self.intensity)

    def draw(self, *seed: int) -> Samples:
        """Samples at random positions."""
        draw = np.random.default_rng(seed)
        basis = sines(draw.uniform(size=self.samples), len(self.intensity))
        noise = np.sqrt(self.noise_variance) * draw.normal(size=(self.samples, len(self.targets)))
        return Samples(basis * self.root, basis @ self.targets.T + noise)

    def learned_fraction(self, coefficients: Float[np.ndarray, "... targets p"]) -> Float[np.ndarray, "... targets"]:
        """The learned fraction of each target for functions with given coefficients."""
        return np.sum(coefficients * self.targets, axis=-1) / np.sum(self.targets**2, axis=-1)

    def test_loss(self, coefficients: Float[np.ndarray, "... targets p"]) -> Float[np.ndarray, "... targets"]:
        """½E(f − f*)² over all positions, excluding noise."""
        return np.sum((coefficients - self.targets) ** 2, axis=-1) / 2
