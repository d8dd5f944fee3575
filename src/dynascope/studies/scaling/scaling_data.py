"""The loss of a model that learns the skills that its training set asks for, against the number of samples."""

from __future__ import annotations

import math

import numpy as np

from dynascope.studies import Reference, Values, curve_tolerance
from dynascope.studies.fields import count, numbers, seed
from dynascope.studies.scaling.skill_losses import losses_of_training_sets
from dynascope.studies.scaling.skill_simulation import FITTED, SkillScaling, exponent_chart, law_chart, ratio_chart
from dynascope.theory import papers
from dynascope.theory.scaling_laws import data_law, fit
from dynascope.theory.scaling_laws.resources import data_spread

_LOSS = (0.03, "five standard errors of the mean over training sets; the law integrates over skills to 1e-4")
_EXPONENT = (0.03, "five standard errors of a fit to such means over one decade, fewer over more")
_PREFACTOR = (0.015, "five standard errors of the mean over three sizes or more")
_ERRORS = 5.0  # standard errors that are tolerated


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
    most_samples: int = count(30_000, "Largest training set.")
    sizes: int = count(9, "Number of sizes, at equal ratios; a power law is fitted to three or more.", least=3)
    training_sets: int = count(
        600, "Number of training sets of each size, enough for an error of the mean of 0.6 %.", least=2
    )
    seed: int = seed("Seed of the samples.")

    reference = Reference.of(
        papers.SKILLS,
        "After long training the loss of the multilinear model falls with the number of samples by the power "
        "α/(α + 1), with a prefactor that is known.",
    )
    law = "samples"
    told = (
        *SkillScaling.told,
        "Infinitely many skills, each with a neuron; {training_sets} training sets of each size.",
        "Training goes on until nothing that the samples tell is left to learn.",
    )
    axes = ("exponent", "samples")
    along = ("samples", "exponent")
    title = "The scaling law of data"
    question = "How much does more data help when most of what there is to learn is rare?"
    figures = (
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
    meaning = (
        "A model is trained to the end on {parameters.fewest_samples} to {parameters.most_samples} samples, each of "
        "which asks for one of endlessly many skills, the k-th with a frequency in proportion to 1/k¹⁺ᵅ. It learns "
        "the skills that its samples happen to show, so that the loss is the share of those that they do not. It falls "
        f"with the fitted exponent {FITTED}. How much more data helps is so set by how rare the rare things are. In "
        "the model a single sample teaches its skill; a network needs more (see the study emergence-data)."
    )
    minutes = 0.6
    names = {
        **SkillScaling.names,
        "standard_error": ("standard error of the loss", "1"),
        "fitted_prefactor": ("prefactor of the power law, fitted", "1"),
    }
    tolerance = curve_tolerance(loss=_LOSS, loss_over_law=_LOSS, decay_exponent=_EXPONENT, prefactor=_PREFACTOR)
    tiny = {"exponents": [0.4, 0.7], "most_samples": 10_000, "sizes": 5, "training_sets": 320}

    def trained(self) -> Values:
        """Draw training sets, train on each of them by gradient flow, and fit power laws to the mean losses."""
        samples, sets = self._amounts, self.training_sets
        losses = losses_of_training_sets(self._exponents, samples, sets, self.seed, **self._model)
        fits = [fit(each, samples, window=(self.fewest_samples, self.most_samples), floor=0.0) for each in losses]
        error = losses.std(axis=1, ddof=1) / math.sqrt(sets)
        fitted = self._fitted(losses.mean(axis=1), samples, fits)
        amplitudes = np.exp(np.log(fitted["loss_over_law"]).mean(axis=1)) * [law.prefactor for law in self._laws]
        return {
            **fitted,
            "prefactor": ("exponent", amplitudes),
            "fitted_prefactor": fitted["prefactor"],
            "standard_error": error,
            "loss_over_law_standard_error": error / self._power_law(samples),
        }

    def exact(self) -> Values:
        """The mean over all training sets, and the power law in it."""
        losses = [data_law(self._amounts, alpha, **self._model) for alpha in self._exponents]
        return self._expected(losses, self._amounts)

    def check(self) -> None:
        """Means over training sets are known as well as the tolerances ask."""
        super().check()
        self._check_span("samples")
        alpha = self._exponents
        spread = np.array([data_spread(self.fewest_samples, each) for each in alpha])
        # Over a decade the exponent of a fit varies by so much of the spread of a loss, relative to α/(α + 1).
        slope = spread * (alpha + 1) / (3 * alpha)
        needed = math.ceil((_ERRORS * max(spread.max() / _LOSS[0], slope.max() / _EXPONENT[0])) ** 2)
        sets, remedy = self.training_sets, f"choose {needed} or more, or larger sets"
        problem = f"training_sets is {sets}, and the loss of small ones varies by {spread.max():.1%}"
        self.require(sets >= needed, "training_sets", remedy, problem=problem)
