"""The scaling law for training time: the multilinear model's loss is a power law until all skills are learned."""

from __future__ import annotations

import functools
import warnings
from typing import Annotated

import numpy as np
import xarray as xr
from annotated_types import Ge

from dynascope.results import Chart, Comparison
from dynascope.studies import Reference, Values, curve_tolerance, parameter
from dynascope.studies.scaling.skill_losses import losses_in_time
from dynascope.studies.scaling.skill_simulation import (
    SkillScaling,
    exponent_chart,
    fitted_exponents,
    law_chart,
    ratio_chart,
)
from dynascope.theory import papers
from dynascope.theory.scaling_laws import MisfitWarning, fit, missing_loss, time_law, time_window
from dynascope.theory.scaling_laws.finite_task import smooth_steps
from dynascope.validation.bounded import PositiveFloat, PositiveInt

_LOSS = (
    2e-4,
    "the law replaces the sum over skills by an integral; the error is 1e-4 while only one skill is being learned",
)
_EXPONENT = (
    1e-3,
    "the first and last skills cause deviations from the power law, up to 7e-4 for a small α and a short fit window",
)
_PREFACTOR = (2e-3, "extrapolation to a single step magnifies the error of the exponent")
_SMALL = 0.05  # R/S below which the growth of the last skills is negligible


class ScalingTime(SkillScaling):
    """Tests whether the loss of the multilinear model on fresh samples falls as T^(−α/(α+1)).

    In the multilinear model f = Σ_k a_k b_k g_k, each skill g_k has separate weights, and a_k b_k is its strength. The
    study compares the loss and its ratio to the power law with the exact law for finitely many skills. The comparison
    starts when several skills are being learned at once. The study also compares the exponent and prefactor of a fit
    with theory. The fit corrects for the finite number of skills: it adds the predicted loss of the further skills that
    a task with infinitely many skills would contain. The exponent without this correction (`uncorrected_exponent`) is
    shown but does not affect the verdict, because this exponent is too large if α is small or there are few skills.
    """

    learning_rate: PositiveFloat = parameter(
        1.0, "Learning rate η, the gradient-flow time of one step; the power law assumes small steps."
    )
    skills: PositiveInt = parameter(50_000, "Number of skills, which equals the number of neurons.")
    times: Annotated[int, Ge(40)] = parameter(
        120, "Number of recorded times; enough of them must be in the fit window."
    )

    reference = Reference.of(
        papers.SKILLS,
        "The loss of the multilinear model decays as T^(−α/(α + 1)) with training time T, with a known prefactor, "
        "until all skills are learned.",
    )
    law = "time"
    notes = (*SkillScaling.notes, "{skills} skills with one neuron each; every step uses fresh samples.")
    axes = ("exponent", "time")
    along = ("time", "exponent")
    title = "The scaling law for training time"
    question = "How fast does the loss decrease with training time if most skills are rare?"
    equation = r"L(T) \propto T^{-\alpha / (\alpha + 1)}, \quad P(k) \propto k^{-(\alpha + 1)}"
    minutes = 0.2
    names = {
        **SkillScaling.names,
        "uncorrected_exponent": ("decay exponent of the loss without correction for missing skills", "1"),
    }
    tolerance = curve_tolerance(loss=_LOSS, loss_over_law=_LOSS, decay_exponent=_EXPONENT, prefactor=_PREFACTOR)
    tiny = {"exponents": [0.4, 0.8], "skills": 5000}

    def figures(self, result: Comparison) -> list[Chart]:
        """The figures: the loss, the loss relative to its power law, and the fitted exponents."""
        caption = (
            "Loss over training time for each α. Straight dashed lines show the power laws. Dashed curves show the "
            "exact law for finitely many skills, which departs from the power law once most skills are learned."
        )
        ratio = (
            "Loss divided by its power law. The ratio is one while the power law holds, from the time at which several "
            "skills are being learned at once until the last skills are learned."
        )
        return [
            law_chart("time", caption, result, decades=5),
            ratio_chart("time", ratio),
            exponent_chart("α/(α + 1)"),
        ]

    def meaning(self, result: Comparison) -> str:
        """Explain how abrupt steps add up to a power law, with the fitted exponents."""
        return (
            f"The model learns {self.skills} skills, each with separate weights. Skill frequencies are proportional to "
            "1/k¹⁺ᵅ, so a few skills are common and most are rare. Each skill is learned abruptly, and rarer skills "
            "are learned later. Theory predicts that these abrupt drops in the loss add up to a smooth power law, "
            "loss ∝ T^(−α/(α + 1)). The fitted exponent, corrected for the finite number of skills, is "
            f"{fitted_exponents(result)}. The skills of this model are built in and do not interfere, whereas the "
            "skills of a neural network can interfere."
        )

    def trained(self) -> xr.Dataset:
        """Train on fresh samples by gradient flow, and fit power laws."""
        losses = losses_in_time(self._exponents, self.skills, self._amounts, **self._model)
        # In an infinite task, the skills beyond the last one would still be at their initial strength.
        never = self.target_scale - self.initial_strength
        missing = [missing_loss(alpha, self.skills, target_scale=never) for alpha in self._exponents]
        cases = list(zip(losses, self._windows, missing, strict=True))
        fits = [fit(loss, self._steps, window=window, floor=0.0, missing=known) for loss, window, known in cases]
        with warnings.catch_warnings():
            # Without the correction for missing skills, the loss is not a power law.
            warnings.simplefilter("ignore", MisfitWarning)
            raw = [fit(loss, self._steps, window=window, floor=0.0).exponent for loss, window, _ in cases]
        values = {**self._fitted(losses, self._steps, fits), "uncorrected_exponent": ("exponent", raw)}
        return self.record(values, windows=[list(each.window) for each in fits])

    def exact(self) -> Values:
        """The law for finitely many skills, from the time at which it holds for every α, and its power law."""
        steps = self._steps[self._steps >= max(low for low, _ in self._windows)]
        losses = [time_law(steps, alpha, **self._theory) for alpha in self._exponents]
        return {**self._expected(losses, steps), "time": ("time", self.learning_rate * steps)}

    def check(self) -> None:
        """Require, for every α, a window of time in which the loss follows its power law."""
        super().check()
        for alpha, (low, high) in zip(self._exponents, self._windows, strict=True):
            span = f"from step {low:.3g} to {high:.3g}"
            problem = f"for {self.skills} skills and α = {alpha:g}, the power law holds only {span}"
            remedy = "choose more skills, a larger exponent or another initial_strength"
            self.require(high >= 20 * low, "skills", remedy, problem=problem)

    @functools.cached_property
    def _spans(self) -> list[tuple[float, float]]:
        """For each α, the steps at which the first skills are learned and the last skills begin to be learned."""
        return [time_window(alpha, **self._theory) for alpha in self._exponents]

    @functools.cached_property
    def _windows(self) -> list[tuple[float, float]]:
        """For each α, the first and last steps between which the loss follows its power law smoothly."""
        # The fit assumes that the last skills are at their initial strength, so their growth must remain small.
        grown = min(1.0, _SMALL * self.target_scale / self.initial_strength)
        starts = [smooth_steps(alpha, **self._theory) for alpha in self._exponents]
        return [(start, high * grown) for start, (_, high) in zip(starts, self._spans, strict=True)]

    @functools.cached_property
    def _steps(self) -> np.ndarray:
        """Recorded steps, from before the first skill is learned to the end of the last window."""
        low, high = zip(*self._spans, strict=True)
        return np.geomspace(0.02 * min(low), max(high), self.times)

    @property
    def _amounts(self) -> np.ndarray:
        return self.learning_rate * self._steps
