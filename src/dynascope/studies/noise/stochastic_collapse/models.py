"""Measurements, predictions and claims for three models in which noise drives weights to zero or repels them."""

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
SQUARES = np.geomspace(0.003, 3.0, 40)  # values of θ² at which its distribution is recorded
STRONG = 1.8  # strength, relative to the threshold, above which students become stationary fast
_WELL_STEPS = 1000
_STATIONARY, _COLLAPSED = 16.0, 40.0  # durations below the threshold, in relaxation times, and above it, in noise times
_RELAXATIONS = 30.0  # duration in relaxation times of the slowest student; the first half is discarded
_ROUNDING = 1e-12  # rounding of a growth rate / ης²; neurons of 1 × 2 and 2 × 2 have growth rate zero
_NEURON_NOISE = 0.03  # η²ς²(n + m), small enough for the continuous-time law
# Tolerances. Distributions: about twice the resolution at the default number of paths. Rates: a twentieth of the noise
# rate ης², far below the growth rates of neurons. Threshold: 2 percent.
_LAW, _EXPONENT, _THRESHOLD = 0.03, 0.05, 0.02


@dataclasses.dataclass(frozen=True)
class CollapseModels:
    """Double wells, students trained on noisy labels, and neurons under matrix noise.

    Attributes:
        settling: Noise levels ζ²/2 of double wells in which the weight stays away from zero.
        collapsing: Noise levels ζ²/2 of double wells in which the weight decays to zero.
        well_runs: Number of paths per double well.
        student_rates: Learning rates η of the students.
        label_variance: Variance ς² of the students' label noise.
        teachers: Strengths of the teachers relative to ης²/2.
        student_runs: Number of students per teacher and learning rate.
        sizes: Numbers of inputs and outputs of the neurons.
        neuron_runs: Number of neurons per size.
        neuron_steps: Number of steps of these neurons.
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
        """Simulate all three models and return axes and values by name, as means over runs with standard errors."""
        return {**self.of_wells(), **self._of_students(), **self._of_neurons()}

    def claims(self, values: Mapping[str, np.ndarray]) -> list[Claim]:
        """Evaluate the claims about all three models."""
        settled, repelling = len(self.settling), self._exponents > _ROUNDING
        gone = Means(values["well_growth"][settled:], values["well_error"][settled:], self.well_runs)
        neurons = values["neuron_exponent"], values["neuron_error"]
        students = Means(values["threshold"], values["threshold_error"], self.student_runs)
        # The last claim is undecided unless theory predicts growth for at least one neuron.
        chosen = repelling if repelling.any() else slice(None)
        return [
            law_of_samples(
                THEORY[0],
                "Below the threshold, θ² in double wells has a stationary Gamma distribution "
                "(Kolmogorov-Smirnov distance).",
                values["law_distance"][:settled],
                self.well_runs,
                most=_LAW,
            ),
            close_to(
                THEORY[1],
                "In double wells above the threshold, log |θ| changes at the rate 1 − ζ²/2 < 0 (largest difference).",
                gone,
                self._well_growth[settled:],
                most=_EXPONENT,
            ),
            close_to(
                THEORY[2],
                "The weakest teacher from which students learn has strength ης²/2 (largest relative difference).",
                students,
                np.ones(len(self.student_rates)),
                most=_THRESHOLD,
            ),
            close_to(
                THEORY[3],
                "Under isotropic noise, neurons grow or shrink at the predicted rates (largest difference / ης²).",
                Means(*neurons, self.neuron_runs),
                self._exponents,
                most=_EXPONENT,
            ),
            repelled(
                THEORY[4],
                "Under isotropic noise, neurons grow if theory predicts growth (smallest rate / ης²).",
                Means(neurons[0][chosen], neurons[1][chosen], self.neuron_runs),
            ).if_known(bool(repelling.any()), "theory predicts growth for none of these neuron sizes"),
        ]

    def exact(self) -> dict[str, Any]:
        """The predictions."""
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
        """The distributions and growth rates of weights in double wells."""
        half = self._noises**2 / 2
        durations = np.where(half < 1, _STATIONARY * (half + 0.3) / (1 - half) ** 2, _COLLAPSED / half)
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
        # A straight line through the strengths learned from strong teachers crosses zero at the threshold.
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
        """The predicted distribution of θ² in each double well; a point mass at zero above the threshold."""

        def law(squares: Any, noise: float) -> np.ndarray:
            if noise**2 >= 2:
                return np.ones_like(squares)
            return quartic_stationary_law(squares, growth=1.0, noise=noise).cumulative

        return [functools.partial(law, noise=each) for each in self._noises.tolist()]

    @property
    def _well_growth(self) -> np.ndarray:
        """The predicted growth rates; stationary weights have growth rate zero."""
        found = [quartic_collapse_exponent(growth=1.0, noise=each) for each in self._noises.tolist()]
        return np.minimum(found, 0.0)

    @property
    def _half_noise(self) -> np.ndarray:
        """The threshold ης²/2 for each learning rate of the students."""
        return np.asarray(self.student_rates) * self.label_variance / 2

    @property
    def _exponents(self) -> np.ndarray:
        """The predicted growth rates of neurons, relative to ης²."""
        return np.array([matrix_noise_exponent(*each, learning_rate=1.0, noise_variance=1.0) for each in self.sizes])
