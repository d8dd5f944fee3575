"""The paths of small neurons of a ReLU network, and the time at which the first neuron becomes large."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import numpy as np

from dynascope.theory.relu_alignment.path import AlignmentPath, alignment_path

__all__ = ["AlignmentPaths"]


@dataclasses.dataclass(frozen=True)
class AlignmentPaths:
    """The paths of several neurons."""

    paths: tuple[AlignmentPath, ...]

    @classmethod
    def of(cls, inputs: np.ndarray, targets: np.ndarray, first: np.ndarray, signs: np.ndarray) -> AlignmentPaths:
        """The paths of neurons with input weights `first`, shape (d, neurons), and these signs of the output."""
        neurons = zip(first.T, signs, strict=True)
        return cls(tuple(alignment_path(inputs, targets, start, sign=cast(Any, int(sign))) for start, sign in neurons))

    def chosen(self, neurons: np.ndarray) -> AlignmentPaths:
        """The paths of the neurons with these indices."""
        return AlignmentPaths(tuple(self.paths[neuron] for neuron in neurons))

    def at(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Directions, shape (times, neurons, d), and log(‖θ(t)‖ / ‖θ(0)‖), shape (times, neurons)."""
        directions, growths = zip(*(path.at(times) for path in self.paths), strict=True)
        return np.stack(directions, axis=1), np.stack(growths, axis=1)

    def time_to_grow(self, growth: float, longest: float) -> float:
        """The first time at which a neuron exceeds this growth in e-folds, to within `longest`/10 000."""
        times = np.linspace(0.0, longest, 10_000)
        return float(times[np.argmax(self.at(times)[1].max(axis=1) > growth)])

    def angles(self, directions: np.ndarray) -> np.ndarray:
        """Angles of directions in the plane in degrees; paths with the same end reach the same angle."""
        ends = np.array([path.end for path in self.paths])
        angles = np.degrees(np.unwrap(np.arctan2(directions[..., 1], directions[..., 0]), axis=0))
        beyond = angles[-1] - np.degrees(np.arctan2(ends[:, 1], ends[:, 0]))
        return angles - 360 * np.round(beyond / 360)
