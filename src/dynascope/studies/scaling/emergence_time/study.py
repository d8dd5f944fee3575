"""At which step a network learns each of its skills, forecast from one skill that is trained alone."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
import xarray as xr

from dynascope.comparison.interval import student_half
from dynascope.comparison.undecided import leave_undecided
from dynascope.errors import InputError
from dynascope.probes.half_strength import first_half, spread_of_halves
from dynascope.results import Comparison
from dynascope.results.numbers import signed_percent
from dynascope.studies import Reference, Values
from dynascope.studies.fields import count, flag, positive, seed
from dynascope.studies.scaling.emergence_study import EmergenceStudy
from dynascope.studies.scaling.emergence_time.page import FIGURES, MEANING
from dynascope.studies.scaling.gaussian_mlp import gaussian_mlp
from dynascope.tasks import SparseParity
from dynascope.theory import papers
from dynascope.theory.skills import Calibration, calibrate, half_strength_steps, time_emergence

_WITHIN = 0.15  # of a half-strength step, either way
_BEYOND = 1.5  # how far beyond the last forecast step to train
_RISE = 0.25  # of its start, by which the loss may rise between two records, in the mean over networks
_REASON = (
    "15 % of a step: the skills that are learned before delay a skill by some percent, of which the calibration on "
    "one skill knows nothing"
)


class EmergenceTime(EmergenceStudy):
    """The strength R_k/S of each skill of multitask sparse parity after T steps of gradient descent.

    A two-layer ReLU network is trained on one skill alone. The logistic logit(R/S) = 2 η S r T − ln c of its strength
    between 0.05 and 0.6, in the mean over networks, gives the rate r and the offset ln c. From these and the
    frequencies P(k) alone follows the strength of every skill of a network that learns them all, and the step
    T_k = ln c/(2 η S r P(k)) at which it has half its strength.

    Judged is that step, in the mean over networks, by its logarithm (`log_half_strength_step`), so that the tolerance
    of 15 % is the same for early and for late skills. The whole curves (`strength`) are drawn and not judged, as the
    law does not claim their ends: networks saturate more slowly than a logistic curve.

    The law is that of a flow: where steps are so large that the loss of networks that learn one skill leaps up on the
    way, by a quarter of its start, the study refuses them. It is for wide networks, and late skills are slower than it
    says. Of the default fields the first skill comes as forecast, the second some five percent late, and the third some
    eight, at width 800 no less than at 400. At width 200 it is eleven percent late and at 100 between 15 and 25, where
    theory and experiment disagree. So they do for skills of two bits, S = 1.4 and α = 0.94, of which the second and
    third are 17 and 25 percent late at any width.
    """

    paper: bool = flag(
        False,
        "Whether to train the networks of the source instead (37 → 1000 → 1 on fresh samples, 30 000 steps, ten "
        "networks), on a GPU.",
    )
    width: int = count(400, "Number of hidden neurons.")
    deviation: float = positive(
        0.01, "Standard deviation of the weights and hidden biases at the start; the bias of the output is zero."
    )
    learning_rate: float = positive(0.05, "η of gradient descent.")
    batch_size: int = count(
        0,
        "Fresh samples in a step; zero for the exact gradient over all inputs, of at most 16 bits.",
        least=0,
        zero="all samples in every step",
    )
    steps: int = count(
        0,
        "Steps with all skills; zero for one and a half times the last step that is forecast.",
        least=0,
        zero="as many as the forecast needs",
    )
    calibration_steps: int = count(1200, "Steps with one skill, enough to learn it.", least=20)
    calibration_seeds: int = count(
        20,
        "Networks with one skill; more than of the others, as an error of the calibration is one of every forecast.",
        least=2,
    )
    times: int = count(200, "Number of steps at which the strengths are recorded.", least=20)
    seeds: int = count(5, "Networks with all skills.", least=2)
    seed: int = seed("Seed of the networks and samples.")

    told = (
        "Of networks of {width} neurons {calibration_seeds} learn one skill, and {seeds} all.",
        "They descend {_way}.",
        "The law is calibrated on one skill; compared are the steps at which the others have half strength.",
    )
    reference = Reference.of(
        papers.SKILLS,
        "Skills are learned one after the other, each along a logistic curve at a rate in proportion to its frequency; "
        "calibrated on one skill, this forecasts when a network learns the others.",
    )
    theory = "multilinear skills, calibrated on one skill"
    flow = "gradient descent of rate {learning_rate:g}"
    axes = ("seed", "step", "skill")
    labelled = {"step": "_recorded", "time": lambda study: study.learning_rate * study._calibrated}
    along = "skill"
    shown = ("strength", "half_strength_step")
    title = "When skills emerge in training"
    question = "Networks learn some skills suddenly, after long showing nothing of them: can it be forecast when?"
    figures = FIGURES
    meaning = MEANING
    minutes = 0.8
    names = {
        **EmergenceStudy.names,
        "calibrated_strength": ("strength of the skill, by the calibrated law", "1"),
        "calibration_strength": ("strength of the skill that is learned alone", "1"),
        "half_strength_step": ("step at which half the skill is learned", "optimiser steps"),
        "half_strength_step_of_seed": ("step at which half the skill is learned, each seed", "optimiser steps"),
        "log_half_strength_step": ("step at which half the skill is learned (its logarithm)", "1"),
    }
    tiny = {
        **{"skills": 2, "bits": 6, "width": 200, "learning_rate": 0.1},
        **{"calibration_steps": 400, "calibration_seeds": 8, "times": 60},
    }
    published = {
        **{"width": 1000, "learning_rate": 0.05, "batch_size": 4000, "steps": 30_000, "calibration_steps": 1500},
        **{"times": 500, "calibration_seeds": 10, "seeds": 10},
    }

    def trained(self) -> Values:
        """Train the networks on all skills."""
        strength, loss = self._trained(self._task, self._recorded, range(self.seeds))
        halves = np.array([[first_half(self._recorded, curve) for curve in run.T] for run in strength])
        mean = halves.mean(axis=0)
        return {
            "loss": (("seed", "step"), loss),
            "strength": strength,
            "half_strength_step_of_seed": (("seed", "skill"), halves),
            "half_strength_step": ("skill", mean),
            "half_strength_step_spread": ("skill", spread_of_halves(halves)),
            "log_half_strength_step": ("skill", np.log(mean)),
        }

    def forecast(self) -> xr.Dataset:
        """Calibrate on one skill, and forecast the others."""
        found, frequencies = self._calibration, self._task.frequencies
        due = math.ceil((1 + _WITHIN) * self._forecast[-1])
        problem = f"steps is {self.steps}, and the last skill is due at step {self._forecast[-1]:.0f}"
        self.require(self._recorded[-1] >= due, "steps", f"train for {due} or more, or zero", problem=problem)
        logarithms, within = np.log(self._forecast), math.log(1 + _WITHIN)
        tolerance = {
            "log_half_strength_step": within * math.sqrt(self.skills) / np.linalg.norm(logarithms),
            "log_half_strength_step_maximum": within / np.abs(logarithms).max(),
        }
        return self.record(
            {
                "strength": (("step", "skill"), time_emergence(self._recorded, frequencies, **self._law)),
                "half_strength_step": ("skill", self._forecast),
                "half_strength_step_standard_error": ("skill", found.half_step_error / frequencies),
                "log_half_strength_step": ("skill", logarithms),
                "calibration_strength": (("seed", "time"), self._single_skill),
                "calibrated_strength": ("time", time_emergence(self._calibrated, [1.0], **self._law)[:, 0]),
            },
            theory=self.theory,
            reference=self.reference.paper,
            **{f"calibrated_{name}": value for name, value in found._asdict().items() if "interval" not in name},
            **{f"{name}_tolerance": float(value) for name, value in tolerance.items()},
            **{f"{name}_tolerance_reason": _REASON for name in tolerance},
        )

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Judge the half-strength steps, unless they are beyond the tolerance by chance; the curves are shown."""
        tree = super().compare(observed, predicted)
        mean, spread = (observed[f"half_strength_step{end}"].to_numpy() for end in ("", "_spread"))
        forecast, error = (predicted[f"half_strength_step{end}"].to_numpy() for end in ("", "_standard_error"))
        if tree.verdict.outcome == "disagree":
            logarithms = (each["log_half_strength_step"].to_numpy() for each in (observed, predicted))
            beyond = np.abs(np.subtract(*logarithms)) - math.log(1 + _WITHIN)
            # Student's intervals of the calibration and of the mean over networks.
            alone = student_half(self.calibration_seeds, self.calibration_seeds) * error / forecast
            trained = student_half(1.0, observed.sizes["seed"]) * spread / mean
            if np.all(beyond < np.hypot(alone, trained)):
                tree = leave_undecided(tree, "Networks scatter too widely to say whether they follow the forecast.")
        rows = [
            f"skill {skill} at {step:.0f} ± {deviation:.0f}, forecast {due:.0f} ({signed_percent(step / due - 1)})"
            for skill, step, deviation, due in zip(range(1, self.skills + 1), mean, spread, forecast, strict=True)
        ]
        told = f"Half learned at step (mean ± standard deviation of {self.seeds} networks): {'; '.join(rows)}."
        verdict = dataclasses.replace(tree.verdict, sentence=f"{told} {tree.verdict.sentence}")
        return dataclasses.replace(tree, verdict=verdict)

    @functools.cached_property
    def _calibration(self) -> Calibration:
        steps, strength = self._calibrated, self._single_skill
        try:
            return calibrate(steps, strength, learning_rate=self.learning_rate, target_scale=self.target_scale)
        except InputError as error:
            raise InputError(
                f"the law cannot be calibrated on networks that learn one skill for {self.calibration_steps} steps",
                argument="calibration_steps",
                value=self.calibration_steps,
                remedy="train longer, until the skill is learned",
            ) from error

    @functools.cached_property
    def _single_skill(self) -> np.ndarray:
        """R/S of the skill that is learned alone, shape (seeds, steps)."""
        seeds = range(self.seeds, self.seeds + self.calibration_seeds)
        strength, loss = self._trained(self._one_skill, self._calibrated, seeds)
        rise = float(np.mean(np.diff(loss).max(axis=1) / loss[:, 0]))
        problem = (
            f"learning_rate is {self.learning_rate}, and in networks that learn one skill the loss rises by "
            f"{rise:.0%} of its start, as no flow does"
        )
        self.require(rise < _RISE, "learning_rate", "choose a smaller one, and more calibration_steps", problem=problem)
        return strength[:, :, 0]

    @property
    def _law(self) -> dict[str, float]:
        """Offset and rate as calibrated, and what else the law is told."""
        told = {"learning_rate": self.learning_rate, "target_scale": self.target_scale}
        return {"offset": self._calibration.offset, "rate": self._calibration.rate, **told}

    @functools.cached_property
    def _forecast(self) -> np.ndarray:
        return half_strength_steps(self._task.frequencies, **self._law)

    @functools.cached_property
    def _recorded(self) -> np.ndarray:
        """Steps of networks with all skills."""
        return self._evenly(self.steps or math.ceil(_BEYOND * self._forecast[-1]))

    @property
    def _calibrated(self) -> np.ndarray:
        """Steps of networks with one skill."""
        return self._evenly(self.calibration_steps)

    def _evenly(self, steps: int) -> np.ndarray:
        return np.unique(np.linspace(0, steps, self.times).round().astype(np.int64))

    def _trained(self, parity: SparseParity, steps: np.ndarray, seeds: range) -> list[np.ndarray]:
        """R_k/S at these steps, (seeds, steps, skills), and losses."""
        widths = (parity.input_dimension, self.width, 1)
        first = (self.seeds + self.calibration_seeds) * self.seed
        networks = [gaussian_mlp(widths, self.deviation, first + each) for each in seeds]
        # The samples by which strengths are estimated are those of zero.
        return self._read(networks, parity, steps, "strength", "loss", seed=first + seeds[0] + 1)

    @property
    def _way(self) -> str:
        return f"on {self.batch_size} fresh samples in a step" if self.batch_size else "by the gradient over all inputs"

    def check(self) -> None:
        """There is a gradient over all inputs where that is asked for."""
        super().check()
        if self.batch_size == 0:
            self._task.all_bits()
