"""Random data of which the theory of margins speaks at a given margin, before anything is trained on them."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from dynascope.errors import InputError
from dynascope.theory.margins import max_margin, support_drift, support_offset

__all__ = ["SeparableData", "separable_data"]

_APART = 0.1  # from the plane that labels the samples
_ROUNDING = 1e-8  # of a margin
_TRIES = 2000


class SeparableData(NamedTuple):
    """Random data, and what theory says of them.

    Attributes:
        z: y x, shape (samples, inputs).
        weights: The solution of the max-margin problem, shape (inputs,).
        own_error: By how much β/ν should be off at ν, relative to the solution.
    """

    z: np.ndarray
    weights: np.ndarray
    own_error: float

    def padded(self, inputs: int) -> SeparableData:
        """With as many inputs, of which the first are zero."""
        absent = inputs - self.z.shape[1]
        return self._replace(z=np.pad(self.z, ((0, 0), (absent, 0))), weights=np.pad(self.weights, (absent, 0)))


def separable_data(
    random: np.random.Generator, samples: int, factors: np.ndarray, level: float, *, gap: float, most: float
) -> SeparableData:
    """Gaussian data of a random plane, drawn until the theory of margins says where training on them ends.

    The solution is unique and needs the block of the largest rate, and samples that are not at its margin are `gap`
    beyond; and the error that theory knows of itself at ν = `level`, of r + C log ν, is below `most`.

    Raises:
        InputError: There are none among many.
    """
    inputs = len(factors)
    for _ in range(_TRIES):
        x, plane = random.normal(size=(samples, inputs)), random.normal(size=inputs)
        plane /= np.linalg.norm(plane)
        z = np.sign(x @ plane)[:, None] * x + _APART * plane
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a block that is not needed
            problem = max_margin(z, factors)
        reached = np.sort(z @ problem.weights)
        apart = reached[reached > 1 + _ROUNDING].min(initial=np.inf) > 1 + gap
        if not (apart and problem.unique and problem.discarded.size == 0):
            continue
        try:
            offset = support_offset(z, factors) + support_drift(z, factors) * np.log(level)
        except InputError:  # a support vector without a share, or a product that is not used
            continue
        own_error = float(np.linalg.norm(offset) / np.linalg.norm(problem.weights) / level)
        if own_error < most:
            return SeparableData(z, problem.weights, own_error)
    raise InputError(
        f"of {_TRIES} random data sets in {inputs} dimensions theory speaks of none",
        argument="gap",
        value=gap,
        remedy="choose a smaller gap, fewer samples or fewer inputs",
    )
