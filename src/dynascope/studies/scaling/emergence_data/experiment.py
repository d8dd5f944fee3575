"""Trains the solvable model and networks on D samples, and forecasts the number of samples that a skill needs."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import optax

from dynascope.comparison import Claim, claim_on_mean
from dynascope.flows import track
from dynascope.studies import Values
from dynascope.studies.scaling.emergence_data.interpolants import least_norm_strength, mean_interpolants
from dynascope.studies.scaling.extended_multilinear import train_extended
from dynascope.studies.scaling.gaussian_mlp import gaussian_mlp
from dynascope.studies.scaling.skill_needs import QUARTER, SkillNeeds
from dynascope.studies.scaling.spread_skills import spread_samples
from dynascope.tasks import Task
from dynascope.theory.skills import calibrate_data, data_emergence
from dynascope.theory.skills.training_set import Definition

if TYPE_CHECKING:
    from dynascope.studies.scaling.emergence_data.study import EmergenceData

__all__ = ["Experiment"]

_DEVIATION = 0.01  # standard deviation of the initial weights
_NETWORKS = 2  # networks per training set, with different initial weights
_TRAINED = 12  # number of training sets on which the extended model is trained
_LEARNED = 0.9  # strength of one skill at which calibration ends, far above one half
_LEFT = 0.1  # training loss relative to ½ S² above which training was too short
_ABRUPT = "The strength of a skill rises more abruptly than in proportion to its number of samples."
_DIFFERENCES = {
    0.25: (_ABRUPT, {"most": 0.0}),
    0.5: (
        "At the number of samples forecast for half of a skill, networks have learned about half of it.",
        {"least": -QUARTER, "most": QUARTER},
    ),
    0.75: (_ABRUPT, {"least": 0.0}),
}
_UNFINISHED = f"the final training loss is above {100 * _LEFT:.0f} % of ½ S², so training was too short"


class Experiment(SkillNeeds):
    """Trains the solvable model and networks on D samples, with a forecast calibrated on one skill."""

    study: EmergenceData

    resource = "samples"
    along_axis = staticmethod(np.log)  # forecasts differ by factors, like the frequencies of the skills
    calibrate = staticmethod(calibrate_data)
    calibrated_on = "networks trained on the most frequent skill alone"

    def trained(self) -> Values:
        """Solve and train the solvable model, train the networks, and evaluate the claims."""
        study, frequencies = self.study, self.task.frequencies
        draw = np.random.default_rng([study.seed, 0])
        counts = (draw.multinomial(size, frequencies, size=study.draws) for size in study.samples)
        strength, loss = zip(*(mean_interpolants(each, study.features, draw) for each in counts), strict=True)
        found = [self.train(size) for size in track(study.samples, "training sets")]
        runs = np.array([by_training_set(each) for each, *_ in found])
        losses, left = (np.array([each[place] for each in found]).mean(axis=1) for place in (1, 2))
        return {
            "basis_strength": strength,
            "basis_loss": loss,
            "trained_strength": (("run", "skill"), [self.descend(*each) for each in self.small_sets]),
            **self.measured(runs, losses),
            "training_loss": ("samples", left),
            **self.claims(runs, undecided="" if left.max() <= _LEFT else _UNFINISHED),
        }

    def exact(self) -> Values:
        """The laws of the solvable model, and the forecast calibrated on networks trained on one skill."""
        study = self.study
        law = data_emergence(study.samples, self.task.frequencies, study.features, finite_size=True)
        interpolants = [least_norm_strength(*each, study.skills) for each in self.small_sets]
        return {
            "basis_strength": law,
            "basis_loss": 1 - law,
            "trained_strength": (("run", "skill"), interpolants),
            **self.forecast(),
        }

    @functools.cached_property
    def small_sets(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Training sets that suffice to learn a quarter of the most frequent skill, as features and targets."""
        study, frequencies = self.study, self.task.frequencies
        draw = np.random.default_rng([study.seed, 1])
        counts = np.round(study.features / 4 * frequencies / frequencies[0]).astype(int)
        found = [spread_samples(counts, study.features, draw) for _ in range(_TRAINED)]
        return [(inputs, study.target_scale * sign) for inputs, sign in found]

    def descend(self, inputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """The strength of each skill in the extended model after training on these samples."""
        study = self.study
        weights = np.random.default_rng([study.seed, 2]).normal(size=(study.skills, study.features))
        # Many times the escape time of a skill with a single sample, which grows at a rate of about 4 P(1) S/√D_c.
        steps = int(250 * np.sqrt(study.features) / self.task.frequencies[0])
        coefficients = train_extended(inputs, targets, weights, target_scale=study.target_scale, steps=steps)
        return coefficients[:, 0] / study.target_scale

    def train(self, size: int, skill: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Train networks on sets of `size` samples, all of one skill if `skill` is given.

        Returns:
            R/S and the loss of every skill, and the training loss; losses are relative to ½ S².
        """
        study, found = self.study, []
        most, widths = study.samples[-1], (self.task.input_dimension, study.width, 1)
        for run in track(range(study.runs), "runs"):
            key = int(np.random.default_rng([study.seed, size, run, 0 if skill is None else 1]).integers(2**31))
            # Every training set is tiled to the largest size, so that all sizes share compiled programs.
            drawn = self.task.sample(jax.random.key(key), most, skill=skill)
            inputs, targets = (np.tile(np.asarray(each)[:size], (most // size, 1)) for each in drawn[:2])
            networks = [gaussian_mlp(widths, _DEVIATION, key + start) for start in range(_NETWORKS)]
            options = {"learning_rate": self.learning_rate, "seed": key}
            readings = ("strength", "skill_loss", "loss")
            found.append(self.measure(networks, Task(inputs, targets), [study.steps], *readings, **options))
        strength, loss, left = (np.concatenate(each)[:, -1] for each in zip(*found, strict=True))
        return strength, loss, left / (study.target_scale**2 / 2)

    @functools.cached_property
    def learning_rate(self) -> Any:
        """The learning rate, or its schedule if it is halved during training."""
        rate, steps = self.study.learning_rate, self.study.halving_steps
        return optax.exponential_decay(rate, steps, 0.5, staircase=True) if steps else rate

    def alone(self) -> tuple[list[int], np.ndarray, np.ndarray]:
        """Train networks on the most frequent skill alone, on training sets large enough to learn it."""
        samples, found = self.study.samples, []
        for size in samples:
            found.append([by_training_set(each)[:, 0] for each in self.train(size, skill=0)[:2]])
            if 1 - np.sqrt(found[-1][1].mean()) > _LEARNED:
                break
        strength, loss = np.moveaxis(np.array(found), 1, 0)
        return samples[: len(found)], strength, loss

    def law(self, needed: float, definition: Definition = "correlation") -> np.ndarray:
        """The strength of every skill, proportional to its number of samples."""
        return data_emergence(self.study.samples, self.task.frequencies, needed, definition=definition)

    @property
    def half_forecast(self) -> np.ndarray:
        """The forecast number of samples at which half of each skill is learned."""
        return self.needs["correlation"].half / self.task.frequencies

    def differences(self, runs: np.ndarray) -> list[Claim]:
        """Claims about the measured minus the forecast strength where the forecast is ¼, ½ and ¾."""
        claims = []
        for share, (statement, bounds) in _DIFFERENCES.items():
            at = 2 * share * self.half_forecast
            reached = [self.strength_at(runs, k, at[k]) - share for k in self.inside(at)]
            if reached:
                claims.append(claim_on_mean(f"forecast {share:g}", statement, np.mean(reached, axis=0), **bounds))
        return claims


def by_training_set(networks: np.ndarray) -> np.ndarray:
    """Average over the networks of each training set, because only the training sets are independent."""
    return networks.reshape(-1, _NETWORKS, networks.shape[-1]).mean(axis=1)
