"""Measured and predicted statistics of runs in the phase plane of position and velocity."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.stats
from jaxtyping import Float

from dynascope.theory import SGD
from dynascope.theory.noise import ModeMoments, discrete_moments

__all__ = [
    "ALONG",
    "DIRECTIONS",
    "MOMENTS",
    "SECTOR",
    "SHARES",
    "PhaseSpace",
    "allowed_deviation",
    "contour_arcs",
    "current_arrows",
    "current_of_sector",
    "expected_current",
    "moments_of",
    "regression_data",
]

MOMENTS = ("position_mean", "velocity_mean", "position_variance", "velocity_variance", "covariance")
SECTOR = math.pi / 8  # half-angle of the sector that selects the runs whose mean path is drawn
SHARES = np.array([0.2, 0.5, 0.8])  # fraction of the runs inside each contour of the modified loss
ALONG = np.linspace(0, 1, 9)  # positions along an arc of a contour, and along an arrow
DIRECTIONS = np.arange(0, 360, 36)  # start angles of the arcs in degrees
_APART = 0.15  # fraction of the runs on either side of a contour whose current is averaged
_CHANCE = 0.01  # probability that any moment exceeds the allowed deviation if the theory is right


class PhaseSpace(NamedTuple):
    """Positions and velocities of runs along the modes.

    Attributes:
        position: a, the distance from the centre, shape (times, runs, modes).
        velocity: b, same shape.
    """

    position: Float[np.ndarray, "times runs modes"]
    velocity: Float[np.ndarray, "times runs modes"]

    def deviations(self, theory: ModeMoments) -> np.ndarray:
        """Deviations of means and covariances from theory in standard errors, shape (5, times, modes)."""
        a, b = self.position - theory.position[:, None], self.velocity - theory.velocity[:, None]
        zero = np.zeros_like(theory.position)
        expected = (zero, zero, theory.position_variance, theory.velocity_variance, theory.covariance)
        found = []
        for each, mean in zip((a, b, a**2, b**2, a * b), expected, strict=True):
            error = each.std(axis=1, ddof=1) / math.sqrt(each.shape[1])
            found.append((each.mean(axis=1) - mean) / error)
        return np.array(found)

    def circulation(self, learning_rate: float) -> np.ndarray:
        """The circulation (a b' − b a')/η, averaged over consecutive steps, shape (runs, modes)."""
        a, b = self.position, self.velocity
        return np.mean(a[:-1] * b[1:] - b[:-1] * a[1:], axis=0) / learning_rate


def allowed_deviation(comparisons: int) -> float:
    """The bound that the largest of this many deviations exceeds by chance in one experiment out of a hundred."""
    return float(scipy.stats.norm.isf(_CHANCE / (2 * comparisons)))


def moments_of(phase: PhaseSpace) -> dict[str, np.ndarray]:
    """Means and covariances over runs, with the names in `MOMENTS`."""
    a, b = phase
    mean, push = a.mean(axis=1), b.mean(axis=1)
    parts = mean, push, a.var(axis=1), b.var(axis=1), np.mean((a - mean[:, None]) * (b - push[:, None]), axis=1)
    return dict(zip(MOMENTS, parts, strict=True))


def current_of_sector(phase: PhaseSpace, scales: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Mean scaled position and velocity of the runs that begin in the sector around the positive position axis."""
    a, b = phase.position / scales[0], phase.velocity / scales[1]
    right = np.abs(np.arctan2(b[0], a[0])) < SECTOR
    weights = right / np.maximum(right.sum(axis=0), 1)
    return np.sum(weights * a, axis=1), np.sum(weights * b, axis=1)


def expected_current(
    times: int, scales: tuple[np.ndarray, np.ndarray], sgd: SGD, modes: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """The predicted mean path: the mean over a sector of the stationary Gaussian, propagated over several steps."""
    first = math.sqrt(math.pi / 2) * math.sin(SECTOR) / SECTOR * scales[0]
    moved = discrete_moments(np.arange(times), sgd, **modes, position=first)
    return moved.position / scales[0], moved.velocity / scales[1]


def contour_arcs(modes: int) -> tuple[np.ndarray, np.ndarray]:
    """Contours of the modified loss that enclose the fractions `SHARES` of the runs, split into arcs at `DIRECTIONS`.

    The contour κΦ = −ln(1 − fraction) is a circle in units of the standard deviations of position and velocity.

    Returns:
        Scaled position and velocity, each of shape (along, shares, directions, modes).

    Example:
        >>> a, b = contour_arcs(1)
        >>> np.allclose(1 - np.exp(-(a**2 + b**2) / 2), SHARES[:, None, None])
        True
    """
    turned = np.deg2rad(DIRECTIONS) - 2 * np.pi / len(DIRECTIONS) * ALONG[:, None, None]
    radius = np.sqrt(-2 * np.log1p(-SHARES))[:, None]
    a, b = (np.repeat((radius * part)[..., None], modes, -1) for part in (np.cos(turned), np.sin(turned)))
    return a, b


def current_arrows(
    phase: PhaseSpace, scales: tuple[np.ndarray, np.ndarray], learning_rate: float
) -> tuple[np.ndarray, np.ndarray]:
    """Arrows along the stationary current, each spanning half the predicted travel time along its contour arc.

    The current at a point is half the mean displacement from the previous to the next step. Noise and restoring force
    do not contribute to it, because they cancel in the stationary state.

    Args:
        phase: Stationary runs at consecutive steps.
        scales: Standard deviations of position and velocity along each mode.
        learning_rate: η.

    Returns:
        Scaled position and velocity, each of shape (along, shares, directions, modes); NaN for arcs without runs.
    """
    points = np.stack([phase.position / scales[0], phase.velocity / scales[1]])
    moves, points = (points[:, 2:] - points[:, :-2]) / 2, points[:, 1:-1]
    # Theory predicts a rotation by ω η in each step, where ω is the ratio of the scales.
    steps = np.pi / len(DIRECTIONS) / (learning_rate * scales[1] / scales[0])
    inside = -np.expm1(-np.sum(points**2, axis=0) / 2)
    part = np.rint(np.rad2deg(np.arctan2(points[1], points[0])) / 360 * len(DIRECTIONS)).astype(int) % len(DIRECTIONS)
    shape = (2, len(SHARES), len(DIRECTIONS), points.shape[-1])
    begin, gone = np.full(shape, np.nan), np.full(shape, np.nan)
    for ring, share in enumerate(SHARES):
        near = np.abs(inside - share) < _APART
        for place, mode in np.ndindex(shape[2:]):
            chosen = near[..., mode] & (part[..., mode] == place)
            if chosen.any():
                begin[:, ring, place, mode] = points[..., mode][:, chosen].mean(axis=1)
                gone[:, ring, place, mode] = moves[..., mode][:, chosen].mean(axis=1) * steps[mode]
    a, b = begin[:, None] + ALONG[:, None, None, None] * gone[:, None]
    return a, b


def regression_data(
    random: np.random.Generator, samples: int, curvatures: np.ndarray, residual: float, distance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Inputs with given eigenvalues of XᵀX/N, and labels that place the minimum at a given distance along each mode."""
    modes = len(curvatures)
    left = np.linalg.qr(random.normal(size=(samples, modes)))[0]
    turn = np.linalg.qr(random.normal(size=(modes, modes)))[0]
    inputs = math.sqrt(samples) * left * np.sqrt(curvatures) @ turn.T
    noise = random.normal(size=samples)
    noise -= left @ (left.T @ noise)
    return inputs, inputs @ turn @ np.full(modes, distance) + residual * noise / np.std(noise)
