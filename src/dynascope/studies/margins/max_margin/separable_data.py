"""Random separable data to which the theory of margins applies at a given ν."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from dynascope.errors import InputError
from dynascope.theory.margins import max_margin, support_drift, support_offset

__all__ = ["SeparableData", "separable_data"]

_APART = 0.1  # smallest distance of a sample from the labelling plane
_ROUNDING = 1e-8  # relative rounding error of a margin
_TRIES = 2000


class SeparableData(NamedTuple):
    """Random data and the predicted limit of training on them.

    Attributes:
        z: y x, shape (samples, inputs).
        weights: The solution of the max-margin problem, shape (inputs,).
        predicted_error: The predicted distance of β/ν from the solution at ν, relative to the solution.
    """

    z: np.ndarray
    weights: np.ndarray
    predicted_error: float

    def padded(self, inputs: int) -> SeparableData:
        """The data with leading zero inputs, up to this number of inputs."""
        absent = inputs - self.z.shape[1]
        return self._replace(z=np.pad(self.z, ((0, 0), (absent, 0))), weights=np.pad(self.weights, (absent, 0)))


def separable_data(
    random: np.random.Generator, samples: int, factors: np.ndarray, level: float, *, gap: float, most: float
) -> SeparableData:
    """Draw Gaussian data, labelled by a random plane, until the theory of margins predicts the limit of training.

    The solution must be unique and use the block with the largest rate. All samples that are not support vectors must
    exceed the margin by at least `gap`. The predicted error at ν = `level`, from the offset r and the drift C log ν of
    β, must be below `most`.

    Raises:
        InputError: No suitable data were found in many draws.
    """
    inputs = len(factors)
    for _ in range(_TRIES):
        x, plane = random.normal(size=(samples, inputs)), random.normal(size=inputs)
        plane /= np.linalg.norm(plane)
        z = np.sign(x @ plane)[:, None] * x + _APART * plane
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about a block that the solution does not use
            problem = max_margin(z, factors)
        reached = np.sort(z @ problem.weights)
        separated = reached[reached > 1 + _ROUNDING].min(initial=np.inf) > 1 + gap
        if not (separated and problem.unique and problem.discarded.size == 0):
            continue
        try:
            offset = support_offset(z, factors) + support_drift(z, factors) * np.log(level)
        except InputError:  # a support vector with zero multiplier, or an unused product
            continue
        predicted_error = float(np.linalg.norm(offset) / np.linalg.norm(problem.weights) / level)
        if predicted_error < most:
            return SeparableData(z, problem.weights, predicted_error)
    raise InputError(
        f"with gap {gap:g}, the theory applies to none of {_TRIES} random data sets in {inputs} dimensions",
        argument="gap",
        value=gap,
        remedy="choose a smaller gap, fewer samples or fewer inputs",
    )
