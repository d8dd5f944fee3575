"""The loss of a model that learns the skills that its training set asks for, against the number of samples."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy.special import gamma, zeta

from dynascope.studies.fields import count, numbers, seed
from dynascope.studies.scaling.skill_flow import train_skills
from dynascope.studies.scaling.skill_simulation import FITTED, NAM, SkillScaling, exponent_chart, law_chart, ratio_chart
from dynascope.studies.study import Reference, curve_tolerance
from dynascope.theory.scaling_laws import PowerLaw, data_law, fit, power_laws

__all__ = ["ScalingData"]

_LOSS = (0.03, "five standard errors of the mean over training sets; the law integrates over skills to 1e-4")
_EXPONENT = (0.03, "five standard errors of a fit to such means over one decade, fewer over more")
_PREFACTOR = (0.015, "five standard errors of the mean over three sizes or more")
_ERRORS = 5.0  # standard errors that are tolerated
_AFTER = 35.0  # e-folds after a skill with a single sample was half learned


class ScalingData(SkillScaling):
    """The loss of the multilinear model after long training on D samples, which falls as D^−α/(α+1).

    Compared are the mean loss over training sets, itself and over the power law; the exponent of a fit to it; and the
    prefactor that it has with the exponent of theory, as the one of the fit is extrapolated to a single sample.
    """

    exponents: list[float] = numbers(
        [0.3, 0.6, 0.9],
        "α of the skill frequencies P(k) ∝ k^−(α+1), at least 0.2: below, the ranks of skills get too large to draw.",
        least=0.2,
    )
    fewest_samples: int = count(300, "Smallest training set.")
    most_samples: int = count(30_000, "Largest one.")
    sizes: int = count(9, "Number of sizes, at equal ratios; a power law is fitted to three or more.", least=3)
    training_sets: int = count(
        600, "Number of training sets of each size, enough for an error of the mean of 0.6 %.", least=2
    )
    seed: int = seed("Seed of the samples.")

    name: ClassVar[str] = "scaling-data"
    reference: ClassVar[Reference] = Reference(
        paper=NAM,
        arxiv="2404.17563",
        claim="After long training the loss of the multilinear model falls with the number of samples by the power "
        "α/(α + 1), with a prefactor that is known.",
    )
    axes: ClassVar = ("exponent", "samples")
    along: ClassVar = ("samples", "exponent")
    title: ClassVar[str] = "The scaling law of data"
    question: ClassVar[str] = "How much does more data help when most of what there is to learn is rare?"
    figures: ClassVar = (
        law_chart(
            "samples",
            "The loss after long training on so many samples, in the mean over {parameters.training_sets} training "
            "sets.",
            points=True,
        ),
        ratio_chart(
            "samples",
            "The same loss over its power law, with standard errors of the mean over training sets; dashed is the "
            "exact mean over all of them.",
            points=True,
            error="loss_over_law_standard_error",
        ),
        exponent_chart("α/(α + 1)"),
    )
    meaning: ClassVar[str] = (
        "A model is trained to the end on {parameters.fewest_samples} to {parameters.most_samples} samples, each of "
        "which asks for one of endlessly many skills, the k-th with a frequency in proportion to 1/k¹⁺ᵅ. It learns "
        "the skills that its samples happen to show, so that the loss is the share of those that they do not. It falls "
        f"with the fitted exponent {FITTED}. How much more data helps is so set by "
        "how rare the rare things are. In the model a single sample teaches its skill; a network needs more "
        "(see the study emergence-data)."
    )
    minutes: ClassVar[float] = 0.5
    tolerance: ClassVar = curve_tolerance(
        loss=_LOSS, loss_over_law=_LOSS, decay_exponent=_EXPONENT, prefactor=_PREFACTOR
    )
    tiny: ClassVar = {"exponents": [0.4, 0.7], "most_samples": 10_000, "sizes": 5, "training_sets": 320}

    def trained(self) -> Mapping[str, Any]:
        """Draw training sets, train on each of them by gradient flow, and fit power laws to the mean losses."""
        samples, losses = self._samples, self._losses()
        fits = [fit(each, samples, window=(self.fewest_samples, self.most_samples), seed=self.seed) for each in losses]
        error = losses.std(axis=1, ddof=1) / math.sqrt(self.training_sets)
        fitted = self._fitted(losses.mean(axis=1), samples, fits)
        amplitudes = np.exp(np.log(fitted["loss_over_law"]).mean(axis=1)) * [law.prefactor for law in self._laws]
        return {
            **fitted,
            "prefactor": ("exponent", amplitudes),
            "fitted_prefactor": fitted["prefactor"],
            "standard_error": error,
            "loss_over_law_standard_error": error / self._power_law(samples),
        }

    def exact(self) -> Mapping[str, Any]:
        """The mean over all training sets, and the power law in it."""
        losses = np.array([data_law(self._samples, alpha, **self._model) for alpha in self._exponents])
        return self._expected(losses, self._samples)

    def labels(self) -> Mapping[str, Any]:
        """Exponents and sizes."""
        return {"exponent": self.exponents, "samples": self._samples}

    def check(self) -> None:
        """Means over training sets are known as well as the tolerances ask."""
        super().check()
        self._check_span("samples")
        spread = max(_spread(alpha, self.fewest_samples) for alpha in self._exponents)
        # Over a decade the exponent of a fit varies by so much of the spread of a loss, relative to α/(α + 1).
        slope = max(_spread(alpha, self.fewest_samples) * (alpha + 1) / (3 * alpha) for alpha in self._exponents)
        needed = math.ceil((_ERRORS * max(spread / _LOSS[0], slope / _EXPONENT[0])) ** 2)
        self.require(
            self.training_sets >= needed,
            "training_sets",
            f"choose {needed} or more, or larger sets",
            problem=f"training_sets is {self.training_sets}, and the loss of small ones varies by {spread:.1%}",
        )

    def _losses(self) -> np.ndarray:
        """Of all data after training on each of the training sets, (exponent, training set, size)."""
        generator = np.random.default_rng(self.seed)
        sizes = self._samples.tolist()
        sets = [
            [_drawn(generator, alpha, samples) for _ in range(self.training_sets) for samples in sizes]
            for alpha in self._exponents
        ]
        counts = np.unique(np.concatenate([counts for each in sets for counts, _ in each]))
        losses = self._train(counts)
        never = (self.target_scale - self.initial_strength) ** 2 / 2

        def loss(drawn: tuple[np.ndarray, np.ndarray]) -> float:
            found, frequency = drawn
            return float(never + frequency @ (losses[np.searchsorted(counts, found)] - never))

        shape = (len(sets), self.training_sets, len(sizes))
        return np.array([loss(drawn) for each in sets for drawn in each]).reshape(shape)

    def _train(self, counts: np.ndarray) -> np.ndarray:
        """The loss of a skill with each number of samples at the end of training.

        Skills with equally many samples start equal and are pulled equally, so that one stands for all of them; and as
        a share d/D in the time D t does what a share d does in the time t, for those of sets of all sizes.
        """
        end = np.array([(self._offset + _AFTER) / (2 * self.target_scale)])
        return train_skills(counts, end, _losses, **self._model)[0]

    @functools.cached_property
    def _samples(self) -> np.ndarray:
        return self._spaced("samples", self.sizes)

    @functools.cached_property
    def _laws(self) -> list[PowerLaw]:
        return [power_laws(alpha, **self._model).samples for alpha in self._exponents]

    @property
    def _description(self) -> list[str]:
        return [
            f"Infinitely many skills, each with a neuron; {self.training_sets} training sets of each size.",
            "Training goes on until nothing that the samples tell is left to learn.",
        ]


def _drawn(generator: np.random.Generator, alpha: float, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """A training set: the numbers of samples that skills have in it, and how frequent those of each number are."""
    ranks, counts = np.unique(generator.zipf(alpha + 1, samples), return_counts=True)
    found, place = np.unique(counts, return_inverse=True)
    return found, np.bincount(place, ranks.astype(np.float64) ** -(alpha + 1)) / zeta(alpha + 1)


def _spread(alpha: float, samples: float) -> float:
    """Standard deviation of the loss between training sets, over its mean.

    For counts d_k that are Poisson and independent the variance is Σ P² (e^(−DP) − e^(−2DP)), summed as the law is; for
    those that add up to D it is less.
    """
    beta = alpha / (alpha + 1)
    skills = zeta(alpha + 1) ** (-1 / (alpha + 1)) / (alpha + 1) * samples ** (1 - beta)
    return math.sqrt(beta * (1 - 0.5 ** (1 + beta)) / (gamma(beta) * skills))


def _losses(missing: Any) -> Any:
    return missing**2 / 2
