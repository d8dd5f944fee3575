"""Linear models on sine features trained on noisy samples of two targets, and the theory of their errors."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from dynascope.flows.solvers.solver import Solver
from dynascope.studies.features.averages import error_of_median
from dynascope.studies.features.linear_models import least_norm, noise_power, train_from_zero
from dynascope.studies.features.sines import NoisySines, centres, sines
from dynascope.theory.features import OverfittingSetup, overfitting_error, training_flow

if TYPE_CHECKING:
    from dynascope.studies import Values
    from dynascope.studies.features.overfitting.study import Overfitting

__all__ = ["NOISE_SAMPLES", "PURE_NOISE", "Experiment"]

PURE_NOISE = (100, 400, 2000)  # numbers of modes in figure 1.4
NOISE_SAMPLES = 50  # samples of pure noise in that figure


class Experiment:
    """Trains one model on noisy samples of a benign and a malignant target.

    Args:
        study: The study that defines the model and the data.
    """

    def __init__(self, study: Overfitting):
        self.study = study

    def trained(self) -> Values:
        """Train on a few draws of the samples, and solve for the end of training on many draws."""
        task, losses, weights = self.task, [], []
        for features, labels in self._draws(self.study.trained):
            run = train_from_zero(features, labels, self.times, solver=Solver(absolute_tolerance=1e-9))
            weights.append(run["weights"].transpose("target", "time", "feature").to_numpy())
            losses.append(np.mean((weights[-1] @ features.T - labels.T[:, None]) ** 2, axis=-1) / 2)
        ends = [task.root * least_norm(*draw).T for draw in self._draws(self.study.draws)]
        learned, test_losses = np.array([task.learned_fraction(end) for end in ends]), [*map(task.test_loss, ends)]
        draw = np.random.default_rng([self.study.seed, 1])
        return {
            **self._curves(losses, weights),
            "target_function": (("run", "sample"), task.targets @ self._basis.T),
            "learnability": ("run", np.median(learned, axis=0)),
            "learnability_standard_error": ("run", error_of_median(learned)),
            "median_test_loss": ("run", np.median(test_losses, axis=0)),
            "mean_test_loss": ("run", np.mean(test_losses, axis=0)),
            "noise_power": ("scaling_parameter", [noise_power(modes, NOISE_SAMPLES, draw) for modes in PURE_NOISE]),
        }

    def exact(self) -> Values:
        """The exact flow on the same samples, and the mean learnability of both targets over draws of samples."""
        flows = [
            [training_flow(self.times, features, label) for label in labels.T]
            for features, labels in self._draws(self.study.trained)
        ]
        losses, weights = ([[getattr(each, name) for each in both] for both in flows] for name in ("loss", "weights"))
        found = [overfitting_error(setup) for setup in self.setups]
        return {
            **self._curves(losses, weights),
            "learnability": ("run", [each.target_learnability for each in found]),
            "asymptotic_test_loss": ("run", [each.test_loss for each in found]),
            "window_test_loss": ("run", [each.window_mse / 2 for each in found]),
            "noise_power": ("scaling_parameter", NOISE_SAMPLES / (np.array(PURE_NOISE) - NOISE_SAMPLES)),
        }

    def _curves(self, losses: Any, weights: Any) -> dict[str, Any]:
        """Medians of the curves (run, time) over draws, and the final functions of the first draw."""
        task, strong, basis = self.task, self.study.strong_modes, self._basis
        coefficients = np.moveaxis(task.root * np.array(weights), 1, 2)  # (draw, time, target, mode)
        target_norms = np.linalg.norm(task.targets, axis=-1)
        curves = {
            "test_loss": task.test_loss(coefficients),
            "learned_fraction": task.learned_fraction(coefficients),
            "strong_fraction": np.linalg.norm(coefficients[..., :strong], axis=-1) / target_norms,
        }
        end = coefficients[0, -1]
        return {
            "loss": np.median(losses, axis=0),
            **{name: np.median(each, axis=0).T for name, each in curves.items()},
            "fitted": (("run", "sample"), end @ basis.T),
            "strong_part": (("run", "sample"), end[:, :strong] @ basis[:, :strong].T),
            "tail_part": (("run", "sample"), end[:, strong:] @ basis[:, strong:].T),
        }

    def _draws(self, count: int) -> Any:
        return (self.task.draw(self.study.seed, 0, number) for number in range(count))

    @functools.cached_property
    def setups(self) -> list[OverfittingSetup]:
        """The spectrum of the model, with the benign and with the malignant target."""
        study = self.study
        setup = OverfittingSetup(study.samples, study.modes, study.strong_modes, noise_variance=study.noise_variance)
        tail = setup.printed_tail if study.tail == "printed" else None
        modes = (study.benign_mode, study.malignant_mode)
        return [dataclasses.replace(setup, target_mode=mode, tail_intensity=tail) for mode in modes]

    @functools.cached_property
    def task(self) -> NoisySines:
        """The distribution of the samples."""
        targets = np.array([setup.target_coefficients for setup in self.setups])
        return NoisySines(self.study.samples, self.setups[0].intensity, targets, self.study.noise_variance)

    @functools.cached_property
    def _basis(self) -> np.ndarray:
        return sines(centres(self.study.positions), self.study.modes)

    @functools.cached_property
    def times(self) -> np.ndarray:
        """Recorded times, up to ten time constants of the tail, after which the labels are fitted."""
        setup, study = self.setups[0], self.study
        last = 10 * study.samples / (setup.tail * (study.modes - study.strong_modes))
        return np.append(0.0, np.geomspace(0.05, last, study.times - 1))
