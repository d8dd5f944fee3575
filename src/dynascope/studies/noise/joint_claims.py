"""Claims on several means or distributions together, with simultaneous confidence intervals."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dynascope.comparison import Claim
from dynascope.comparison.interval import student_half

__all__ = ["Means", "close_to", "law_of_samples", "repelled"]

CONFIDENCE = 0.95


class Means(NamedTuple):
    """Several means over runs.

    Attributes:
        mean: Shape (means,).
        error: Their standard errors.
        runs: Number of runs of each mean.
    """

    mean: np.ndarray
    error: np.ndarray
    runs: int

    @classmethod
    def of(cls, runs: np.ndarray) -> Means:
        """Means over the last axis."""
        return cls(runs.mean(axis=-1), runs.std(axis=-1, ddof=1) / math.sqrt(runs.shape[-1]), runs.shape[-1])

    @property
    def half(self) -> np.ndarray:
        """Half the width of each interval, with joint coverage over all means."""
        each = 1 - (1 - CONFIDENCE) / len(self.mean)
        return np.array([student_half(self.runs * float(error) ** 2, self.runs, each) for error in self.error])


def law_of_samples(name: str, statement: str, distances: np.ndarray, samples: int, *, most: float) -> Claim:
    """A claim on the largest distance of distributions from laws, with a Dvoretzky-Kiefer-Wolfowitz interval.

    Args:
        name: A short name.
        statement: The claim in words.
        distances: Kolmogorov-Smirnov distances, one for each law.
        samples: Number of independent samples of each distribution.
        most: Largest distance that the claim allows.
    """
    worst = float(np.max(distances))
    # P(sup |F̂ − F| > ε) ≤ 2 exp(−2nε²), for all laws together.
    half = math.sqrt(math.log(2 * len(distances) / (1 - CONFIDENCE)) / (2 * samples))
    return Claim(name, statement, worst, max(worst - half, 0.0), worst + half, most=most)


def close_to(name: str, statement: str, runs: Means, theory: np.ndarray, *, most: float) -> Claim:
    """A claim on the largest difference of several means from theory, with a joint interval."""
    apart, half = np.abs(runs.mean - theory), runs.half
    low = float(np.maximum(apart - half, 0.0).max())
    return Claim(name, statement, float(apart.max()), low, float((apart + half).max()), most=most)


def repelled(name: str, statement: str, runs: Means) -> Claim:
    """The claim that the smallest of several means is above zero."""
    low, value, high = (float(np.min(each)) for each in (runs.mean - runs.half, runs.mean, runs.mean + runs.half))
    return Claim(name, statement, value, low, high, least=0.0)
