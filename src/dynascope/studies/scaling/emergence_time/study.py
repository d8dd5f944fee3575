"""The training step at which a network learns each skill, forecast from networks that learn one skill alone."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated

import numpy as np
import xarray as xr
from annotated_types import Ge

from dynascope.comparison.interval import student_half
from dynascope.comparison.undecided import leave_undecided
from dynascope.results import Comparison
from dynascope.results.numbers import signed_percent
from dynascope.studies import Reference, Values, parameter
from dynascope.studies.scaling.emergence_study import EmergenceStudy
from dynascope.studies.scaling.emergence_time import page
from dynascope.studies.scaling.emergence_time.experiment import Experiment
from dynascope.studies.tolerances import with_limits
from dynascope.theory import papers
from dynascope.validation.bounded import NonNegativeInt, PositiveFloat, PositiveInt, Seed

_WITHIN = 0.15  # tolerance of a half-strength step, relative to the forecast
_REASON = (
    "15 % of a step: skills that are learned first delay a later skill by some percent, an effect that the calibration "
    "on one skill does not include"
)


class EmergenceTime(EmergenceStudy):
    """The strength R_k/S of each skill of multitask sparse parity after T steps of gradient descent.

    The forecast is calibrated on two-layer ReLU networks that learn one skill alone. The logistic curve
    logit(R/S) = 2 η S r T − ln c is fitted to their mean strength between 0.05 and 0.6 and gives the rate r and the
    offset ln c. Together with the frequencies P(k), these two numbers predict the strength of every skill of networks
    that learn all skills, and the step T_k = ln c/(2 η S r P(k)) at which skill k has half strength.

    The study judges the logarithm of this step, in the mean over networks (`log_half_strength_step`), so that the
    tolerance of 15 % is the same for early and late skills. The whole curves (`strength`) are drawn and not judged,
    because networks saturate more slowly than a logistic curve.

    The law describes gradient flow. If the loss of networks that learn one skill rises by a quarter of its initial
    value during training, the learning rate is too large and the study raises `InputError`. The law also assumes wide
    networks, and late skills emerge later than forecast. With the default fields the first skill emerges as forecast,
    the second about five percent late and the third about eight, at width 800 no less than at 400. At width 200 the
    third is eleven percent late. At width 100 it is between 15 and 25 percent late, and theory and experiment disagree.
    They also disagree for skills of two bits, S = 1.4 and α = 0.94, where the second and third skill are 17 and 25
    percent late at any width.
    """

    paper: bool = parameter(
        False,
        "Whether to train in the setting of the paper instead (37 → 1000 → 1 on fresh samples, 30 000 steps, ten "
        "networks), on a GPU.",
    )
    width: PositiveInt = parameter(400, "Number of hidden neurons.")
    deviation: PositiveFloat = parameter(
        0.01, "Standard deviation of the initial weights and hidden biases; the output bias starts at zero."
    )
    learning_rate: PositiveFloat = parameter(0.05, "η of gradient descent.")
    batch_size: NonNegativeInt = parameter(
        0,
        "Fresh samples in a step; zero for the exact gradient over all inputs, of at most 16 bits.",
        zero="all samples in every step",
    )
    steps: NonNegativeInt = parameter(
        0,
        "Steps with all skills; zero for one and a half times the last forecast step.",
        zero="as many as the forecast needs",
    )
    calibration_steps: Annotated[int, Ge(20)] = parameter(1200, "Steps with one skill, enough to learn it.")
    calibration_seeds: Annotated[int, Ge(2)] = parameter(
        20,
        "Networks that learn one skill; more than seeds, because an error of the calibration affects every forecast.",
    )
    times: Annotated[int, Ge(20)] = parameter(200, "Number of recorded steps.")
    seeds: Annotated[int, Ge(2)] = parameter(5, "Networks that learn all skills.")
    seed: Seed = parameter(0, "Seed of the networks and samples.")

    notes = (
        "{calibration_seeds} networks of {width} neurons learn one skill, and {seeds} learn all skills.",
        "The gradient is computed {batches}.",
        "The law is calibrated on one skill; the steps at which all skills have half strength are compared.",
    )
    reference = Reference.of(
        papers.SKILLS,
        "Skills are learned one after the other, each along a logistic curve at a rate proportional to its frequency; "
        "calibrated on one skill, this law forecasts when a network learns the others.",
    )
    theory = "multilinear skills, calibrated on one skill"
    flow = "gradient descent of rate {learning_rate:g}"
    axes = ("seed", "step", "skill")
    labelled = {
        "step": "experiment.recorded_steps",
        "time": lambda study: study.learning_rate * study.experiment.calibration_steps,
    }
    along = "skill"
    shown = ("strength", "half_strength_step")
    title = "When skills emerge in training"
    question = "Networks learn some skills suddenly, after a long time without progress. Can theory forecast when?"
    figures, meaning = page.figures, page.meaning
    minutes = 0.8
    names = {
        **EmergenceStudy.names,
        "calibrated_strength": ("strength of the skill, calibrated law", "1"),
        "calibration_strength": ("strength of the skill learned alone", "1"),
        "half_strength_step": ("half-strength step of the skill", "optimiser steps"),
        "half_strength_step_of_seed": ("half-strength step of the skill, each seed", "optimiser steps"),
        "log_half_strength_step": ("logarithm of the half-strength step", "1"),
    }
    experiment_type = Experiment
    tiny = {
        **{"skills": 2, "bits": 6, "width": 200, "learning_rate": 0.1},
        **{"calibration_steps": 400, "calibration_seeds": 8, "times": 60},
    }
    published = {
        **{"width": 1000, "learning_rate": 0.05, "batch_size": 4000, "steps": 30_000, "calibration_steps": 1500},
        **{"times": 500, "calibration_seeds": 10, "seeds": 10},
    }

    @property
    def batches(self) -> str:
        """How the gradient is computed, as part of a sentence."""
        return f"on {self.batch_size} fresh samples in each step" if self.batch_size else "over all inputs"

    def check(self) -> None:
        """The exact gradient exists where it is requested."""
        super().check()
        if self.batch_size == 0:
            self.experiment.task.all_bits()

    def exact(self) -> Values:
        """The forecast, for a run that includes the last half-strength step with its tolerance."""
        last, end = self.experiment.half_steps[-1], self.experiment.recorded_steps[-1]
        due = math.ceil((1 + _WITHIN) * last)
        problem = f"steps is {self.steps}, and the last half-strength step is forecast at {last:.0f}"
        self.require(end >= due, "steps", f"train for {due} steps or more, or choose zero", problem=problem)
        return super().exact()

    def judged(self, predicted: xr.Dataset) -> xr.Dataset:
        """The prediction with the tolerance of a step, converted to errors of logarithms."""
        logarithms, within = predicted["log_half_strength_step"].to_numpy(), math.log(1 + _WITHIN)
        limits = {
            "log_half_strength_step": within * math.sqrt(logarithms.size) / np.linalg.norm(logarithms),
            "log_half_strength_step_maximum": within / np.abs(logarithms).max(),
        }
        return with_limits(predicted, {name: (float(limit), _REASON) for name, limit in limits.items()})

    def compared(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Judge the half-strength steps, and leave a deviation undecided that may be due to chance."""
        result = super().compared(observed, predicted)
        mean, spread = (observed[f"half_strength_step{end}"].to_numpy() for end in ("", "_spread"))
        forecast, error = (predicted[f"half_strength_step{end}"].to_numpy() for end in ("", "_standard_error"))
        networks = observed.sizes["seed"]
        if result.verdict.outcome == "disagree":
            logarithms = (each["log_half_strength_step"].to_numpy() for each in (observed, predicted))
            beyond = np.abs(np.subtract(*logarithms)) - math.log(1 + _WITHIN)
            # Student's intervals of the calibration and of the mean over networks.
            calibrating = self.setting.calibration_seeds
            calibration = student_half(calibrating, calibrating) * error / forecast
            training = student_half(1.0, networks) * spread / mean
            if np.all(beyond < np.hypot(calibration, training)):
                reason = "The networks scatter too widely to decide whether they follow the forecast."
                result = leave_undecided(result, reason)
        rows = [
            f"skill {skill} at {step:.0f} ± {deviation:.0f}, forecast {due:.0f} ({signed_percent(step / due - 1)})"
            for skill, (step, deviation, due) in enumerate(zip(mean, spread, forecast, strict=True), 1)
        ]
        steps = f"Half-strength steps (mean ± standard deviation of {networks} networks): {'; '.join(rows)}.".replace(
            "inf", "∞"
        )
        verdict = dataclasses.replace(result.verdict, sentence=f"{steps} {result.verdict.sentence}")
        return dataclasses.replace(result, verdict=verdict)
