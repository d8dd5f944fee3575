"""Three models that noise draws to zero or repels: what is seen of them, what theory says, and what is claimed."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.stats

from dynascope.comparison import Claim
from dynascope.studies.noise.joint_claims import Means, close_to, law_of_samples, repelled
from dynascope.studies.noise.stochastic_collapse.model_runs import double_well, matrix_noise, noisy_students
from dynascope.theory.noise import (
    matrix_noise_exponent,
    noisy_student_strength,
    quartic_collapse_exponent,
    quartic_stationary_law,
)

__all__ = ["SQUARES", "STRONG", "THEORY", "CollapseModels"]

THEORY = (
    "double well, stationary law",
    "double well, collapse",
    "student, threshold",
    "matrix noise, exponents",
    "matrix noise, repels",
)
SQUARES = np.geomspace(0.003, 3.0, 40)  # at which distributions of θ² are known
STRONG = 1.8  # teachers, over the threshold, of which students settle soon
_WELL_STEPS = 1000
_SETTLED, _GONE = 16.0, 40.0  # durations: in relaxations near the threshold, and in those of the noise beyond it
_RELAXATIONS = 30.0  # of the slowest student, of which the first half is left out
_NEURON_NOISE = 0.03  # η²ς²(n + m), small for a law of continuous time
# How near theory is claimed to be: laws to about twice what the default number of paths tells them to, rates to a
# twentieth of the rate of the noise, which is far from zero where neurons vanish or grow, and a threshold to 2 percent.
_LAW, _EXPONENT, _THRESHOLD = 0.03, 0.05, 0.02


@dataclasses.dataclass(frozen=True)
class CollapseModels:
    """Double wells, students of noisy labels, and neurons under the noise of a matrix.

    Attributes:
        settling: ζ²/2 of double wells in which the weight settles.
        collapsing: ζ²/2 of those in which it falls to zero.
        well_runs: Paths of each double well.
        student_rates: η of the students.
        label_variance: ς² of their labels.
        teachers: Strengths of teachers over ης²/2.
        student_runs: Students of each teacher at each rate.
        sizes: Inputs and outputs of neurons.
        neuron_runs: Neurons of each size.
        neuron_steps: Steps of these neurons.
        seed: Seed of all noise.
    """

    settling: Sequence[float]
    collapsing: Sequence[float]
    well_runs: int
    student_rates: Sequence[float]
    label_variance: float
    teachers: Sequence[float]
    student_runs: int
    sizes: Sequence[tuple[int, int]]
    neuron_runs: int
    neuron_steps: int
    seed: int

    def measured(self) -> dict[str, Any]:
        """All three simulated: by name the axes and the values, which are means over runs with their errors."""
        return {**self.of_wells(), **self._of_students(), **self._of_neurons()}

    def claims(self, values: Mapping[str, np.ndarray]) -> list[Claim]:
        """How near what was seen is to theory."""
        settled, repelling = len(self.settling), self._exponents > 0
        gone = Means(values["well_growth"][settled:], values["well_error"][settled:], self.well_runs)
        neurons = values["neuron_exponent"], values["neuron_error"]
        students = Means(values["threshold"], values["threshold_error"], self.student_runs)
        # Where theory says of no neuron that it is repelled, nothing is known.
        chosen = repelling if repelling.any() else slice(None)
        return [
            law_of_samples(
                THEORY[0],
                "θ² in double wells follows its Gamma law: the largest distance of distributions.",
                values["law_distance"][:settled],
                self.well_runs,
                most=_LAW,
            ),
            close_to(
                THEORY[1],
                "Beyond the threshold log |θ| falls at the rate 1 − ζ²/2: the largest difference.",
                gone,
                self._well_growth[settled:],
                most=_EXPONENT,
            ),
            close_to(
                THEORY[2],
                "Students learn of what is stronger than ης²/2: the largest difference, over it.",
                students,
                np.ones(len(self.student_rates)),
                most=_THRESHOLD,
            ),
            close_to(
                THEORY[3],
                "Isotropic noise makes neurons grow or shrink at their rates, over ης²: the largest difference.",
                Means(*neurons, self.neuron_runs),
                self._exponents,
                most=_EXPONENT,
            ),
            repelled(
                THEORY[4],
                "Isotropic noise makes neurons grow where theory says so: the least rate, over ης².",
                Means(neurons[0][chosen], neurons[1][chosen], self.neuron_runs),
            ).if_known(bool(repelling.any()), "theory expects no neuron to grow at these strengths of the noise"),
        ]

    def exact(self) -> dict[str, Any]:
        """What theory says."""
        strengths = np.outer(self._half_noise, self.teachers)
        learned = [
            noisy_student_strength(each, self.label_variance, learning_rate=rate)
            for each, rate in zip(strengths, self.student_rates, strict=True)
        ]
        return {
            "cumulative": (("noise_level", "square"), [law(SQUARES) for law in self._laws]),
            "well_growth": (("noise_level",), self._well_growth),
            "learned": (("student", "teacher"), np.array(learned) / self._half_noise[:, None]),
            "neuron_exponent": (("neuron",), self._exponents),
            "imbalance_ratio": (("student", "charge"), np.ones_like(strengths)),
        }

    def of_wells(self) -> dict[str, Any]:
        """Where weights in double wells settle, and how fast those fall that do not."""
        half = self._noises**2 / 2
        durations = np.where(half < 1, _SETTLED * (half + 0.3) / (1 - half) ** 2, _GONE / half)
        middle, end = double_well(self._noises, durations, runs=self.well_runs, steps=_WELL_STEPS, seed=self.seed)
        grown, squares = Means.of((end - middle) / (durations[:, None] / 2)), np.exp(2 * end)
        distances = [scipy.stats.kstest(each, law) for each, law in zip(squares, self._laws, strict=True)]
        return {
            "cumulative": (("noise_level", "square"), np.mean(squares[:, None] <= SQUARES[:, None], axis=2)),
            "law_distance": (("noise_level",), [each.statistic for each in distances]),
            "law_probability": (("noise_level",), [each.pvalue for each in distances]),
            "well_growth": (("noise_level",), grown.mean),
            "well_error": (("noise_level",), grown.error),
        }

    def _of_students(self) -> dict[str, Any]:
        weakest = min(rate**2 for rate in self.student_rates) * self.label_variance
        strong = np.asarray(self.teachers) >= STRONG
        slowest = float(np.asarray(self.teachers)[strong].min()) - 1
        found = noisy_students(
            np.outer(self._half_noise, self.teachers),
            np.asarray(self.student_rates),
            noise_variance=self.label_variance,
            runs=self.student_runs,
            steps=int(np.ceil(_RELAXATIONS * 8 / (weakest * slowest**2))),
            seed=self.seed,
        )
        learned = found.learned / self._half_noise[:, None, None]
        # The straight line through what is learned of strong teachers is zero at the threshold.
        x, y = np.asarray(self.teachers)[strong], learned[:, strong]
        slope = np.tensordot(y, x - x.mean(), (1, 0)) / np.sum((x - x.mean()) ** 2)
        thresholds = Means.of(x.mean() - y.mean(axis=1) / slope)
        worst = np.abs(found.imbalance_ratio - 1).argmax(axis=2)[..., None]
        return {
            "learned": (("student", "teacher"), learned.mean(axis=2)),
            "threshold": (("student",), thresholds.mean),
            "threshold_error": (("student",), thresholds.error),
            "imbalance_ratio": (("student", "charge"), np.take_along_axis(found.imbalance_ratio, worst, 2)[..., 0]),
        }

    def _of_neurons(self) -> dict[str, Any]:
        options = {"runs": self.neuron_runs, "steps": self.neuron_steps, "seed": self.seed}
        grown = Means.of(matrix_noise(self.sizes, strength=_NEURON_NOISE, **options))
        return {"neuron_exponent": (("neuron",), grown.mean), "neuron_error": (("neuron",), grown.error)}

    @property
    def _noises(self) -> np.ndarray:
        return np.sqrt(2 * np.array([*self.settling, *self.collapsing]))

    @functools.cached_property
    def _laws(self) -> list[Any]:
        """The distribution of θ² in each double well; where it falls to zero that of zero."""

        def law(squares: Any, noise: float) -> np.ndarray:
            if noise**2 >= 2:
                return np.ones_like(squares)
            return quartic_stationary_law(squares, growth=1.0, noise=noise).cumulative

        return [functools.partial(law, noise=each) for each in self._noises.tolist()]

    @property
    def _well_growth(self) -> np.ndarray:
        """Weights that have settled grow no more."""
        found = [quartic_collapse_exponent(growth=1.0, noise=each) for each in self._noises.tolist()]
        return np.minimum(found, 0.0)

    @property
    def _half_noise(self) -> np.ndarray:
        """ης²/2."""
        return np.asarray(self.student_rates) * self.label_variance / 2

    @property
    def _exponents(self) -> np.ndarray:
        """Over ης²."""
        return np.array([matrix_noise_exponent(*each, learning_rate=1.0, noise_variance=1.0) for each in self.sizes])
