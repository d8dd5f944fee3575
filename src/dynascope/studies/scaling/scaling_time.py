"""The loss of a model that learns skills one after the other, against time: a power law, and where it ends."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import xarray as xr

from dynascope.studies import Reference, Values, curve_tolerance
from dynascope.studies.fields import count, positive
from dynascope.studies.scaling.skill_losses import losses_in_time
from dynascope.studies.scaling.skill_simulation import FITTED, SkillScaling, exponent_chart, law_chart, ratio_chart
from dynascope.theory import papers
from dynascope.theory.scaling_laws import MisfitWarning, fit, missing_loss, time_law, time_window
from dynascope.theory.scaling_laws.finite_task import smooth_steps

_LOSS = (2e-4, "the law integrates over skills, which costs 1e-4 when no more than one of them is being learned")
_EXPONENT = (
    1e-3,
    "within its window the law bends by its first and last skills, by 7e-4 where α and the window are small",
)
_PREFACTOR = (2e-3, "as for the exponent, and extrapolated from the window to a single step")
_SMALL = 0.05  # start over S, up to which the growth of the last skills hardly matters


class ScalingTime(SkillScaling):
    """The loss of the multilinear model on fresh samples, which falls as T^−α/(α+1) until it runs out of skills.

    Compared are the loss, itself and over the power law, with the law of finitely many skills, from the time on at
    which several skills are being learned at once; and the exponent and the prefactor of a fit, where the loss of the
    skills that an infinite task would have too is added first. What the fit is without it (`uncorrected_exponent`) is
    shown and not judged: with few skills or a small α it is too large.
    """

    learning_rate: float = positive(
        1.0, "η, the gradient-flow time of a step; the power law is in steps, which are small ones."
    )
    skills: int = count(50_000, "Number of skills, and of neurons.")
    times: int = count(
        120, "Number of times at which the loss is recorded, of which a fit needs enough in its window.", least=40
    )

    reference = Reference.of(
        papers.SKILLS,
        "The loss of the multilinear model falls with time by the power α/(α + 1), with a prefactor that is known, "
        "until the skills run out.",
    )
    law = "time"
    told = (*SkillScaling.told, "{skills} skills, each with a neuron, and fresh samples without end.")
    axes = ("exponent", "time")
    along = ("time", "exponent")
    title = "The scaling law of training time"
    question = (
        "How does the loss fall with training time when there are many things to learn, and most of them are rare?"
    )
    figures = (
        law_chart(
            "time",
            "The loss over training time, for each α, by which skills get rarer: a power of time is straight "
            "between logarithmic axes. Straight and dashed is the power law; dashed upon each curve is the exact law "
            "for as many skills as there are, which leaves the power law when the skills run out.",
            decades=5,
        ),
        ratio_chart(
            "time",
            "The same loss over its power law. At one the power law holds: it begins when several skills are being "
            "learned at once, and ends when none is left.",
        ),
        exponent_chart("α/(α + 1)"),
    )
    meaning = (
        "A model learns {parameters.skills} skills, each with weights of its own; the k-th is asked for with a "
        "frequency in proportion to 1/k¹⁺ᵅ, so that few are common and most are rare. Each is learned rather "
        "suddenly, the rare ones later, and their sum makes the loss fall as a power of time: with the fitted exponent "
        f"{FITTED}. A smooth law of the whole can so be made of abrupt steps of its parts. The model has its skills "
        "built in and none gets in the way of another, which is not so in a network."
    )
    minutes = 0.2
    names = {
        **SkillScaling.names,
        "uncorrected_exponent": ("exponent with which the loss decays, uncorrected for missing skills", "1"),
    }
    tolerance = curve_tolerance(loss=_LOSS, loss_over_law=_LOSS, decay_exponent=_EXPONENT, prefactor=_PREFACTOR)
    tiny = {"exponents": [0.4, 0.8], "skills": 5000}

    def trained(self) -> xr.Dataset:
        """Train on fresh samples by gradient flow, and fit power laws."""
        losses = losses_in_time(self._exponents, self.skills, self._amounts, **self._model)
        # The skills that are missing would not have left their start either.
        never = self.target_scale - self.initial_strength
        missing = [missing_loss(alpha, self.skills, target_scale=never) for alpha in self._exponents]
        cases = list(zip(losses, self._windows, missing, strict=True))
        fits = [fit(loss, self._steps, window=window, floor=0.0, missing=known) for loss, window, known in cases]
        with warnings.catch_warnings():
            # Without the missing skills the loss is no power law, which the study shows.
            warnings.simplefilter("ignore", MisfitWarning)
            raw = [fit(loss, self._steps, window=window, floor=0.0).exponent for loss, window, _ in cases]
        values = {**self._fitted(losses, self._steps, fits), "uncorrected_exponent": ("exponent", raw)}
        return self.record(values, windows=[list(each.window) for each in fits])

    def exact(self) -> Values:
        """The law of finitely many skills, from when it holds for all tasks, and the power law in it."""
        steps = self._steps[self._steps >= max(low for low, _ in self._windows)]
        losses = [time_law(steps, alpha, **self._theory) for alpha in self._exponents]
        return {**self._expected(losses, steps), "time": ("time", self.learning_rate * steps)}

    def check(self) -> None:
        """There is a window in which each task follows its power law."""
        super().check()
        for alpha, (low, high) in zip(self._exponents, self._windows, strict=True):
            problem = f"of {self.skills} skills with α = {alpha:g} a law ends at {high:.3g} and begins at {low:.3g}"
            remedy = "take more skills, a larger exponent or another start"
            self.require(high >= 20 * low, "skills", remedy, problem=problem)

    @functools.cached_property
    def _spans(self) -> list[tuple[float, float]]:
        """The steps between which the first skills of each task have been learned and its last ones not yet."""
        return [time_window(alpha, **self._theory) for alpha in self._exponents]

    @functools.cached_property
    def _windows(self) -> list[tuple[float, float]]:
        """Those between which each task also follows its power law smoothly."""
        # The last skills, which the fit takes to be at their start, have grown from it in proportion to it.
        grown = min(1.0, _SMALL * self.target_scale / self.initial_strength)
        starts = [smooth_steps(alpha, **self._theory) for alpha in self._exponents]
        return [(start, high * grown) for start, (_, high) in zip(starts, self._spans, strict=True)]

    @functools.cached_property
    def _steps(self) -> np.ndarray:
        """From before the first skill until the last window ends, where the other tasks have been learned."""
        low, high = zip(*self._spans, strict=True)
        return np.geomspace(0.02 * min(low), max(high), self.times)

    @property
    def _amounts(self) -> np.ndarray:
        return self.learning_rate * self._steps
