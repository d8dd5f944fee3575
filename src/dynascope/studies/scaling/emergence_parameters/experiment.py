"""Trains the solvable model and networks of N neurons, and forecasts the number of neurons that a skill needs."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import optax

from dynascope.comparison import Claim, claim_on_mean
from dynascope.studies import Values
from dynascope.studies.scaling.extended_multilinear import train_with_features
from dynascope.studies.scaling.gaussian_mlp import gaussian_mlp
from dynascope.studies.scaling.skill_needs import QUARTER, SkillNeeds
from dynascope.studies.scaling.spread_skills import spread_parities
from dynascope.tasks import SparseParity
from dynascope.theory.skills import calibrate_parameters, parameter_emergence
from dynascope.theory.skills.training_set import Definition
from dynascope.training.optimizers import decayed

if TYPE_CHECKING:
    from dynascope.studies.scaling.emergence_parameters.study import EmergenceParameters

__all__ = ["Experiment"]

_DEVIATION = 0.01  # standard deviation of the initial weights
_ALONE = 0.5  # largest width for training on one skill, as a fraction of the largest width
_SWAPPED = 0.2  # difference of strengths above which a rarer skill counts as stronger


class Experiment(SkillNeeds):
    """Trains the solvable model and networks of N neurons, with a forecast calibrated on one skill."""

    study: EmergenceParameters

    resource = "neurons"
    along_axis = staticmethod(np.float64)  # forecasts are equally spaced in the number of neurons
    calibrate = staticmethod(calibrate_parameters)
    calibrated_on = "networks trained on one skill alone"

    def trained(self) -> Values:
        """Train the solvable model and the networks, and evaluate the claims."""
        study = self.study
        strength, loss = np.moveaxis(np.array([self.descend(count) for count in study.neurons]), 1, 0)
        runs, losses = self.train(self.task, study.neurons, study.runs)
        swapped = runs - np.minimum.accumulate(runs, axis=-1) > _SWAPPED
        return {
            "basis_strength": strength,
            "basis_loss": loss,
            **self.measured(runs, losses.mean(axis=1)),
            "strength_spread": runs.std(axis=1, ddof=1),
            "out_of_order": ("neurons", np.any(swapped, axis=-1).mean(axis=1)),
            **self.claims(runs),
        }

    def exact(self) -> Values:
        """The law of the solvable model, and the forecast calibrated on networks trained on one skill."""
        law = self.law(self.study.features)
        return {"basis_strength": law, "basis_loss": 1 - law, **self.forecast()}

    def descend(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Strength of each skill in the trained model with N features, and its loss relative to the zero function."""
        study, frequencies = self.study, self.task.frequencies
        weights = np.abs(np.random.default_rng([study.seed, 2]).normal(size=(study.skills, study.features)))
        steps = int(400 * np.sqrt(study.features) / frequencies[-1])
        options = {"target_scale": study.target_scale, "steps": steps}
        return train_with_features(*self._features, count, frequencies, weights, **options)

    @functools.cached_property
    def _features(self) -> tuple[np.ndarray, np.ndarray]:
        draw = np.random.default_rng([self.study.seed, 1])
        return spread_parities(self.study.skills, self.study.relevant_bits, self.study.features, draw)

    def train(self, parity: SparseParity, widths: list[int], runs: int) -> tuple[np.ndarray, np.ndarray]:
        """Strength R/S and loss relative to ½ S² of every skill, shape (widths, networks, skills)."""
        found = self.measure(
            [self._network(parity, width, widths[-1], run) for width in widths for run in range(runs)],
            parity,
            [self.study.steps],
            "strength",
            "skill_loss",
            optimizer=decayed(optax.adam, self.study.weight_decay),
            # Seed zero is reserved for the samples that estimate strengths.
            seed=self.study.seed + 1,
        )
        strength, loss = np.array(found).reshape(2, len(widths), runs, parity.skills)
        return strength, loss

    def _network(self, parity: SparseParity, width: int, most: int, run: int) -> Any:
        seed = int(np.random.default_rng([self.study.seed, parity.skills, width, run]).integers(2**31))
        return gaussian_mlp((parity.input_dimension, most, 1), _DEVIATION, seed, present=width)

    @property
    def narrow(self) -> list[int]:
        """The widths of the networks trained on one skill alone."""
        neurons = self.study.neurons
        return [count for count in neurons if count <= _ALONE * neurons[-1]]

    def alone(self) -> tuple[list[int], np.ndarray, np.ndarray]:
        """Train networks on one skill alone."""
        strength, loss = self.train(self.one_skill, self.narrow, self.study.alone)
        return self.narrow, strength[..., 0], loss[..., 0]

    def law(self, needed: float, definition: Definition = "correlation") -> np.ndarray:
        """The strength of every skill if neurons are assigned to the most frequent skill first."""
        return parameter_emergence(self.study.neurons, self.study.skills, needed, definition=definition)

    @property
    def half_forecast(self) -> np.ndarray:
        """The forecast number of neurons at which half of each skill is learned."""
        return self.needs["correlation"].needed * (np.arange(self.study.skills) + 0.5)

    def differences(self, runs: np.ndarray) -> list[Claim]:
        """Claims about the strength at the width forecast for half of each skill, within the trained widths."""
        half = self.half_forecast
        return [
            claim_on_mean(
                f"skill {k + 1}",
                f"At the width forecast for half of skill {k + 1}, networks have learned about half of the skill.",
                self.strength_at(runs, k, half[k]) - 0.5,
                least=-QUARTER,
                most=QUARTER,
            )
            for k in self.inside(half)
        ]
