"""Joint claims about several means or distributions, with simultaneous confidence intervals."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dynascope.comparison import Claim
from dynascope.comparison.interval import student_half

__all__ = ["Means", "close_to", "law_of_samples", "repelled"]

CONFIDENCE = 0.95


class Means(NamedTuple):
    """Sample means of several quantities over independent runs.

    Attributes:
        mean: Shape (means,).
        error: Standard errors of the means.
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
        """Half-widths of simultaneous confidence intervals."""
        each = 1 - (1 - CONFIDENCE) / len(self.mean)
        return np.array([student_half(self.runs * float(error) ** 2, self.runs, each) for error in self.error])


def law_of_samples(name: str, statement: str, distances: np.ndarray, samples: int, *, most: float) -> Claim:
    """A claim about the largest distance between samples and their laws, with a Dvoretzky-Kiefer-Wolfowitz interval.

    Args:
        name: A short name.
        statement: The claim as a sentence.
        distances: Kolmogorov-Smirnov distance between each sample and its law.
        samples: Number of independent draws in each sample.
        most: Largest distance allowed by the claim.
    """
    worst = float(np.max(distances))
    # P(sup |F̂ − F| > ε) ≤ 2 exp(−2nε²), with a union bound over all laws.
    half = math.sqrt(math.log(2 * len(distances) / (1 - CONFIDENCE)) / (2 * samples))
    return Claim(name, statement, worst, max(worst - half, 0.0), worst + half, most=most)


def close_to(name: str, statement: str, runs: Means, theory: np.ndarray, *, most: float) -> Claim:
    """A claim about the largest difference between several means and theory, with a simultaneous interval."""
    apart, half = np.abs(runs.mean - theory), runs.half
    low = float(np.maximum(apart - half, 0.0).max())
    return Claim(name, statement, float(apart.max()), low, float((apart + half).max()), most=most)


def repelled(name: str, statement: str, runs: Means) -> Claim:
    """The claim that the smallest of several means is positive."""
    low, value, high = (float(np.min(each)) for each in (runs.mean - runs.half, runs.mean, runs.mean + runs.half))
    return Claim(name, statement, value, low, high, least=0.0)
