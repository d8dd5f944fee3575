"""The scaling law for data: the loss of the multilinear model is a power law in the number of samples."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from annotated_types import Ge

from dynascope.results import Chart, Comparison
from dynascope.studies import Reference, Values, curve_tolerance, parameter
from dynascope.studies.scaling.skill_losses import losses_of_training_sets
from dynascope.studies.scaling.skill_simulation import (
    SkillScaling,
    exponent_chart,
    fitted_exponents,
    law_chart,
    ratio_chart,
)
from dynascope.theory import papers
from dynascope.theory.scaling_laws import data_law, fit
from dynascope.theory.scaling_laws.resources import data_spread
from dynascope.validation.bounded import PositiveInt, Seed

_LOSS = (0.03, "five standard errors of the mean over training sets; the integral over skills is accurate to 1e-4")
_EXPONENT = (
    0.03,
    "five standard errors of a fit to the mean losses over one decade; the errors are smaller over wider ranges",
)
_PREFACTOR = (0.015, "five standard errors of a mean over at least three training-set sizes")
_ERRORS = 5.0  # tolerance in standard errors


class ScalingData(SkillScaling):
    """Tests whether the loss of the multilinear model after long training on D samples falls as D^(−α/(α+1)).

    In the multilinear model f = Σ_k a_k b_k g_k, each skill g_k has separate weights, and a_k b_k is its strength. The
    study compares the mean loss over training sets, its ratio to the power law, the fitted exponent and the prefactor
    with theory. The prefactor is fitted with the exponent fixed at its predicted value. If both were fitted, the
    prefactor would be the loss extrapolated to D = 1, far outside the fitted range.
    """

    exponents: list[Annotated[float, Ge(0.2)]] = parameter(
        [0.3, 0.6, 0.9],
        "Exponents α of the skill frequencies P(k) ∝ k^−(α+1); below 0.2, the ranks of drawn skills become too large.",
    )
    fewest_samples: PositiveInt = parameter(300, "Size of the smallest training set.")
    most_samples: PositiveInt = parameter(30_000, "Size of the largest training set.")
    sizes: Annotated[int, Ge(3)] = parameter(9, "Number of training-set sizes, spaced geometrically.")
    training_sets: Annotated[int, Ge(2)] = parameter(
        600, "Number of training sets of each size; with the default, the standard error of the mean loss is 0.6 %."
    )
    seed: Seed = parameter(0, "Seed of the samples.")

    reference = Reference.of(
        papers.SKILLS,
        "After long training, the loss of the multilinear model decays as D^(−α/(α + 1)) with the number of samples D, "
        "with a known prefactor.",
    )
    law = "samples"
    notes = (
        *SkillScaling.notes,
        "Infinitely many skills with one neuron each; {training_sets} training sets of each size.",
        "Training continues until every skill in the training set is learned.",
    )
    axes = ("exponent", "samples")
    along = ("samples", "exponent")
    title = "The scaling law for data"
    question = "How fast does the loss decrease with more data if most skills are rare?"
    equation = r"L(D) \propto D^{-\alpha / (\alpha + 1)}, \quad P(k) \propto k^{-(\alpha + 1)}"
    minutes = 0.6
    names = {
        **SkillScaling.names,
        "standard_error": ("standard error of the loss", "1"),
        "fitted_prefactor": ("fitted prefactor of the power law", "1"),
    }
    tolerance = curve_tolerance(loss=_LOSS, loss_over_law=_LOSS, decay_exponent=_EXPONENT, prefactor=_PREFACTOR)
    tiny = {"exponents": [0.4, 0.7], "most_samples": 10_000, "sizes": 5, "training_sets": 320}

    def figures(self, result: Comparison) -> list[Chart]:
        """The figures: the loss, the loss relative to its power law, and the fitted exponents."""
        caption = (
            f"Loss after long training against the number of samples, averaged over {self.training_sets} training sets."
        )
        ratio = (
            "The same loss divided by its power law, with standard errors over training sets. The dashed curve is the "
            "exact expectation."
        )
        return [
            law_chart("samples", caption, result, points=True),
            ratio_chart("samples", ratio, points=True, error="loss_over_law_standard_error"),
            exponent_chart("α/(α + 1)"),
        ]

    def meaning(self, result: Comparison) -> str:
        """Explain how rare skills determine the value of more data, with the fitted exponents."""
        return (
            f"The model is trained to convergence on {self.fewest_samples} to {self.most_samples} samples. "
            "Each sample requires one of infinitely many skills, whose frequencies fall as 1/k¹⁺ᵅ. The model learns "
            "the skills in its training set, so its loss is proportional to the total frequency of the missing skills. "
            "Theory predicts loss ∝ D^(−α/(α + 1)) for D samples; the fitted exponent is "
            f"{fitted_exponents(result)}. In this model, a single sample suffices to learn a skill; neural networks "
            "need more, as the emergence-data study shows."
        )

    def trained(self) -> Values:
        """Draw training sets, train on each by gradient flow, and fit power laws to the losses."""
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
        """The expected loss over training sets and its power law."""
        losses = [data_law(self._amounts, alpha, **self._model) for alpha in self._exponents]
        return self._expected(losses, self._amounts)

    def check(self) -> None:
        """Require enough training sets for the tolerances."""
        super().check()
        self._check_span("samples")
        alpha = self._exponents
        spread = np.array([data_spread(self.fewest_samples, each) for each in alpha])
        # Relative standard deviation of the exponent fitted over one decade, given that of a loss.
        slope = spread * (alpha + 1) / (3 * alpha)
        needed = math.ceil((_ERRORS * max(spread.max() / _LOSS[0], slope.max() / _EXPONENT[0])) ** 2)
        sets, remedy = self.training_sets, f"choose {needed} or more, or larger fewest_samples"
        problem = f"training_sets is {sets}, but the loss varies by {spread.max():.1%} between the smallest sets"
        self.require(sets >= needed, "training_sets", remedy, problem=problem)
