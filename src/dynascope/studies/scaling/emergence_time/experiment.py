"""Calibrates a law on networks trained on one skill, and trains networks on all skills to test its forecast."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dynascope.errors import InputError
from dynascope.probes.half_strength import first_half, spread_of_halves
from dynascope.studies import Values
from dynascope.studies.scaling.emergence_experiment import EmergenceExperiment
from dynascope.studies.scaling.gaussian_mlp import gaussian_mlp
from dynascope.tasks import SparseParity
from dynascope.theory.skills import Calibration, calibrate, half_strength_steps, time_emergence

if TYPE_CHECKING:
    from dynascope.studies.scaling.emergence_time.study import EmergenceTime

__all__ = ["Experiment"]

_BEYOND = 1.5  # number of training steps over the last forecast step
_RISE = 0.25  # largest allowed rise of the mean loss between records, relative to its initial value


class Experiment(EmergenceExperiment):
    """Trains networks on one skill and on all skills, and forecasts every skill from the networks trained on one."""

    study: EmergenceTime

    def trained(self) -> Values:
        """Train on all skills and find the step at which each skill reaches half strength."""
        strength, loss = self.train(self.task, self.recorded_steps, range(self.study.seeds))
        halves = np.array([[first_half(self.recorded_steps, curve) for curve in run.T] for run in strength])
        mean = halves.mean(axis=0)
        return {
            "loss": (("seed", "step"), loss),
            "strength": strength,
            "half_strength_step_of_seed": (("seed", "skill"), halves),
            "half_strength_step": ("skill", mean),
            "half_strength_step_spread": ("skill", spread_of_halves(halves)),
            "log_half_strength_step": ("skill", np.log(mean)),
        }

    def exact(self) -> Values:
        """The forecast for every skill, and the calibration curve with the networks trained on one skill."""
        frequencies = self.task.frequencies
        return {
            "strength": (("step", "skill"), time_emergence(self.recorded_steps, frequencies, **self.law)),
            "half_strength_step": ("skill", self.half_steps),
            "half_strength_step_standard_error": ("skill", self.calibration.half_step_error / frequencies),
            "log_half_strength_step": ("skill", np.log(self.half_steps)),
            "calibration_strength": (("seed", "time"), self.single_skill),
            "calibrated_strength": ("time", time_emergence(self.calibration_steps, [1.0], **self.law)[:, 0]),
        }

    def prediction_attributes(self) -> Values:
        """The calibrated constants."""
        found = self.calibration._asdict()
        return {f"calibrated_{name}": value for name, value in found.items() if "interval" not in name}

    @functools.cached_property
    def single_skill(self) -> np.ndarray:
        """R/S of networks trained on one skill alone, shape (seeds, steps)."""
        study = self.study
        seeds = range(study.seeds, study.seeds + study.calibration_seeds)
        strength, loss = self.train(self.one_skill, self.calibration_steps, seeds)
        rise = float(np.mean(np.diff(loss).max(axis=1) / loss[:, 0]))
        problem = (
            f"at learning_rate {study.learning_rate}, the loss of networks trained on one skill rises by {rise:.0%} of "
            "its initial value, so training does not follow gradient flow"
        )
        remedy = "choose a smaller learning_rate and more calibration_steps"
        study.require(rise < _RISE, "learning_rate", remedy, problem=problem)
        return strength[:, :, 0]

    @functools.cached_property
    def calibration(self) -> Calibration:
        """Rate and offset of the logistic curve of one skill learned alone."""
        study = self.study
        steps, strength = self.calibration_steps, self.single_skill
        try:
            return calibrate(steps, strength, learning_rate=study.learning_rate, target_scale=study.target_scale)
        except InputError as error:
            raise InputError(
                f"calibration_steps is {study.calibration_steps}, which is too few to calibrate the law on one skill",
                argument="calibration_steps",
                value=study.calibration_steps,
                remedy="choose enough calibration steps to learn the skill",
            ) from error

    @property
    def law(self) -> dict[str, Any]:
        """Arguments of the calibrated law."""
        model = {"learning_rate": self.study.learning_rate, "target_scale": self.study.target_scale}
        return {"offset": self.calibration.offset, "rate": self.calibration.rate, **model}

    @functools.cached_property
    def half_steps(self) -> np.ndarray:
        """The forecast step at which each skill reaches half strength."""
        return half_strength_steps(self.task.frequencies, **self.law)

    @functools.cached_property
    def recorded_steps(self) -> np.ndarray:
        """Recorded steps of networks trained on all skills."""
        return self._evenly(self.study.steps or math.ceil(_BEYOND * self.half_steps[-1]))

    @property
    def calibration_steps(self) -> np.ndarray:
        """Recorded steps of networks trained on one skill."""
        return self._evenly(self.study.calibration_steps)

    def _evenly(self, steps: int) -> np.ndarray:
        return np.unique(np.linspace(0, steps, self.study.times).round().astype(np.int64))

    def train(self, parity: SparseParity, steps: np.ndarray, seeds: range) -> list[np.ndarray]:
        """Train networks; return R_k/S at the steps, shape (seeds, steps, skills), and the losses."""
        study = self.study
        widths = (parity.input_dimension, study.width, 1)
        first = (study.seeds + study.calibration_seeds) * study.seed
        networks = [gaussian_mlp(widths, study.deviation, first + each) for each in seeds]
        # Seed zero is reserved for the samples that estimate strengths.
        return self.measure(networks, parity, steps, "strength", "loss", seed=first + seeds[0] + 1)
