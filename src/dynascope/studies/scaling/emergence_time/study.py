"""The training step at which a network learns each skill, forecast from networks trained on one skill."""

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

_WITHIN = 0.15  # relative tolerance of a half-strength step
_REASON = (
    "15 % of the step: skills learned early delay later skills by several percent, an effect that calibration on one "
    "skill does not include"
)


class EmergenceTime(EmergenceStudy):
    """Tests forecasts of the strength R_k/S of each skill in multitask sparse parity during training.

    In multitask sparse parity, each skill is the parity of a few input bits, and every sample requires one skill. The
    forecast is calibrated on two-layer ReLU networks trained on one skill alone. The logistic curve logit(R/S) = 2 η S
    r T − ln c, where T is the number of steps, is fitted to the mean strength of these networks between 0.05 and 0.6.
    The fit determines the rate r and the offset ln c. Together with the frequencies P(k), these two numbers predict the
    strength of every skill in networks trained on all skills. They also predict the step T_k = ln c/(2 η S r P(k)) at
    which skill k reaches half strength.

    The study compares the logarithm of the mean half-strength step (`log_half_strength_step`) with the forecast. The
    tolerance is 15 % of the step for early and late skills alike. The full curves (`strength`) are shown but do not
    affect the verdict, because networks saturate more slowly than a logistic curve.

    The law describes gradient flow. If the loss of networks trained on one skill rises by a quarter of its initial
    value, the learning rate is too large and the study raises `InputError`. The law also assumes wide networks. Even in
    wide networks, later skills emerge later than forecast. With the default settings, the first skill emerges as
    forecast, the second about 5 percent late and the third about 8 percent late; at width 800, the delays are the same.
    The delay of the third skill is 11 percent at width 200 and 15 to 25 percent at width 100, where theory and
    experiment disagree. Theory and experiment also disagree for skills of two bits with S = 1.4 and α = 0.94: the
    second and third skills are 17 and 25 percent late at any width.
    """

    paper: bool = parameter(
        False,
        "Whether to use the paper's setting instead, which requires a GPU: ten networks of layer sizes 37, 1000 and 1, "
        "trained on fresh samples for 30 000 steps.",
    )
    width: PositiveInt = parameter(400, "Number of hidden neurons.")
    deviation: PositiveFloat = parameter(
        0.01, "Standard deviation of the initial weights and hidden biases; the output bias is initially zero."
    )
    learning_rate: PositiveFloat = parameter(0.05, "Learning rate η of gradient descent.")
    batch_size: NonNegativeInt = parameter(
        0,
        "Number of fresh samples per step; zero for the exact gradient over all inputs, for at most 16 bits.",
        zero="all inputs in every step",
    )
    steps: NonNegativeInt = parameter(
        0,
        "Number of steps on all skills; zero for one and a half times the last forecast step.",
        zero="derived from the forecast",
    )
    calibration_steps: Annotated[int, Ge(20)] = parameter(1200, "Number of steps on one skill, enough to learn it.")
    calibration_seeds: Annotated[int, Ge(2)] = parameter(
        20,
        "Number of networks trained on one skill; more than seeds, because calibration errors affect every forecast.",
    )
    times: Annotated[int, Ge(20)] = parameter(200, "Number of recorded steps.")
    seeds: Annotated[int, Ge(2)] = parameter(5, "Number of networks trained on all skills.")
    seed: Seed = parameter(0, "Seed of the networks and samples.")

    notes = (
        "{calibration_seeds} networks of {width} neurons are trained on one skill, and {seeds} on all skills.",
        "The gradient is computed {batches}.",
        "The law is calibrated on one skill and tested on the half-strength steps of all skills.",
    )
    reference = Reference.of(
        papers.SKILLS,
        "Skills are learned one after another, each along a logistic curve at a rate proportional to its frequency. "
        "Calibrated on one skill, this law forecasts when a network learns the others.",
    )
    theory = "multilinear skills, calibrated on one skill"
    flow = "gradient descent with learning rate {learning_rate:g}"
    axes = ("seed", "step", "skill")
    labelled = {
        "step": "experiment.recorded_steps",
        "time": lambda study: study.learning_rate * study.experiment.calibration_steps,
    }
    along = "skill"
    shown = ("strength", "half_strength_step")
    title = "When skills emerge during training"
    question = "Networks learn some skills suddenly, after a long time without progress. Can theory forecast when?"
    figures, meaning = page.figures, page.meaning
    equation = r"\frac{R_k}{S} = \frac{1}{1 + \exp\left( \ln c - 2 \eta S r P(k) T \right)}"
    minutes = 0.8
    names = {
        **EmergenceStudy.names,
        "calibrated_strength": ("strength of the skill according to the calibrated law", "1"),
        "calibration_strength": ("strength of the skill learned alone", "1"),
        "half_strength_step": ("half-strength step of the skill", "optimiser steps"),
        "half_strength_step_of_seed": ("half-strength step of the skill for each seed", "optimiser steps"),
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
        """A description of the gradient, as part of a sentence."""
        return f"on {self.batch_size} fresh samples in each step" if self.batch_size else "over all inputs"

    def check(self) -> None:
        """Require few enough bits if the exact gradient is requested."""
        super().check()
        if self.batch_size == 0:
            self.experiment.task.all_bits()

    def exact(self) -> Values:
        """Evaluate the forecast, and require that the run includes the last half-strength step with its tolerance."""
        last, end = self.experiment.half_steps[-1], self.experiment.recorded_steps[-1]
        due = math.ceil((1 + _WITHIN) * last)
        problem = f"steps is {self.steps}, but the last skill is forecast to reach half strength at step {last:.0f}"
        self.require(
            end >= due,
            "steps",
            f"train for at least {due} steps, or set steps to 0 to derive them from the forecast",
            problem=problem,
        )
        return super().exact()

    def with_tolerances(self, predicted: xr.Dataset) -> xr.Dataset:
        """The prediction with the tolerance of a step, converted to an error of the logarithm."""
        logarithms, within = predicted["log_half_strength_step"].to_numpy(), math.log(1 + _WITHIN)
        limits = {
            "log_half_strength_step": within * math.sqrt(logarithms.size) / np.linalg.norm(logarithms),
            "log_half_strength_step_maximum": within / np.abs(logarithms).max(),
        }
        return with_limits(predicted, {name: (float(limit), _REASON) for name, limit in limits.items()})

    def compared(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Compare the half-strength steps; the verdict is undecided if a deviation may be due to chance."""
        result = super().compared(observed, predicted)
        mean, spread = (observed[f"half_strength_step{end}"].to_numpy() for end in ("", "_spread"))
        forecast, error = (predicted[f"half_strength_step{end}"].to_numpy() for end in ("", "_standard_error"))
        networks = observed.sizes["seed"]
        if result.verdict.outcome == "disagree":
            logarithms = (each["log_half_strength_step"].to_numpy() for each in (observed, predicted))
            beyond = np.abs(np.subtract(*logarithms)) - math.log(1 + _WITHIN)
            # Student's t intervals of the calibration and of the mean over networks.
            calibrating = self.setting.calibration_seeds
            calibration = student_half(calibrating, calibrating) * error / forecast
            training = student_half(1.0, networks) * spread / mean
            if np.all(beyond < np.hypot(calibration, training)):
                reason = "The networks vary too much to decide whether they follow the forecast."
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
