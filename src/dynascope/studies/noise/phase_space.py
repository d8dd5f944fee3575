"""What many runs do in the planes of position and velocity along modes, and how far that is from their moments."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.stats
from jaxtyping import Float

from dynascope.theory.noise import ModeMoments, discrete_moments

__all__ = [
    "MOMENTS",
    "SECTOR",
    "PhaseSpace",
    "allowed_deviation",
    "current_of_sector",
    "expected_current",
    "moments_of",
    "regression_data",
]

MOMENTS = ("position_mean", "velocity_mean", "position_variance", "velocity_variance", "covariance")
SECTOR = math.pi / 8  # half the angle of those runs whose mean path is drawn
_CHANCE = 0.01  # of finding any moment off where theory is right


class PhaseSpace(NamedTuple):
    """Runs along modes.

    Attributes:
        position: a, the distance from the centre, shape (times, runs, modes).
        velocity: b, of the same shape.
    """

    position: Float[np.ndarray, "times runs modes"]
    velocity: Float[np.ndarray, "times runs modes"]

    def deviations(self, theory: ModeMoments) -> np.ndarray:
        """How far means and covariances are from theory in standard errors, shape (5, times, modes)."""
        a, b = self.position - theory.position[:, None], self.velocity - theory.velocity[:, None]
        zero = np.zeros_like(theory.position)
        expected = (zero, zero, theory.position_variance, theory.velocity_variance, theory.covariance)
        found = []
        for each, mean in zip((a, b, a**2, b**2, a * b), expected, strict=True):
            error = each.std(axis=1, ddof=1) / math.sqrt(each.shape[1])
            found.append((each.mean(axis=1) - mean) / error)
        return np.array(found)

    def circulation(self, learning_rate: float) -> np.ndarray:
        """(a b' − b a')/η averaged over neighbouring times, shape (runs, modes)."""
        a, b = self.position, self.velocity
        return np.mean(a[:-1] * b[1:] - b[:-1] * a[1:], axis=0) / learning_rate


def allowed_deviation(comparisons: int) -> float:
    """What the largest of so many deviations exceeds in one of a hundred experiments at most."""
    return float(scipy.stats.norm.isf(_CHANCE / (2 * comparisons)))


def moments_of(phase: PhaseSpace) -> dict[str, np.ndarray]:
    """Means and covariances over runs, by the names of `MOMENTS`."""
    a, b = phase
    mean, push = a.mean(axis=1), b.mean(axis=1)
    parts = mean, push, a.var(axis=1), b.var(axis=1), np.mean((a - mean[:, None]) * (b - push[:, None]), axis=1)
    return dict(zip(MOMENTS, parts, strict=True))


def current_of_sector(phase: PhaseSpace, scales: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Mean position and velocity, over their scales, of those runs that are on the right of their plane at first."""
    a, b = phase.position / scales[0], phase.velocity / scales[1]
    right = np.abs(np.arctan2(b[0], a[0])) < SECTOR
    weights = right / np.maximum(right.sum(axis=0), 1)
    return np.sum(weights * a, axis=1), np.sum(weights * b, axis=1)


def expected_current(
    times: int, scales: tuple[np.ndarray, np.ndarray], settings: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """The same by theory: the mean of a sector of the Gaussian law, and what steps make of it."""
    first = math.sqrt(math.pi / 2) * math.sin(SECTOR) / SECTOR * scales[0]
    moved = discrete_moments(np.arange(times), **settings, position=first)
    return moved.position / scales[0], moved.velocity / scales[1]


def regression_data(
    random: np.random.Generator, samples: int, curvatures: np.ndarray, residual: float, distance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Inputs with these eigenvalues of XᵀX/N, and labels about a function so far from zero along each mode."""
    modes = len(curvatures)
    left = np.linalg.qr(random.normal(size=(samples, modes)))[0]
    turn = np.linalg.qr(random.normal(size=(modes, modes)))[0]
    inputs = math.sqrt(samples) * left * np.sqrt(curvatures) @ turn.T
    noise = random.normal(size=samples)
    noise -= left @ (left.T @ noise)
    return inputs, inputs @ turn @ np.full(modes, distance) + residual * noise / np.std(noise)
