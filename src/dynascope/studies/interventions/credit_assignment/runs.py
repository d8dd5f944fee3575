"""Training of digit classifiers with every rule: at several depths, on a grid of settings, and with noisy updates."""

from __future__ import annotations

import dataclasses
import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import xarray as xr

from dynascope.errors import DivergenceWarning
from dynascope.interventions import (
    CREDIT_RULES,
    CreditRule,
    CreditTraining,
    FeedbackNetwork,
    feedback_convolutional,
    feedback_mlp,
    train_with_feedback,
)
from dynascope.tasks import Labelled
from dynascope.theory.interventions import noise_misalignment

__all__ = ["GRID_RULES", "CreditRuns"]

# Rules with a rule parameter, and backpropagation, which has none.
GRID_RULES = tuple(name for name, rule in CREDIT_RULES.items() if rule.primitives or rule.feedback == "weights")
_NOISY = "symmetric alignment"
_IMAGE = (8, 8)
_CHANNELS = (8, 16)


@dataclasses.dataclass(frozen=True)
class CreditRuns:
    """All training runs of the study.

    Attributes:
        data: Training digits.
        test: Test digits.
        depths: Numbers of layers.
        width: Width of the hidden layers.
        training: Settings of the runs at all depths.
        kolen_pollack_decay: Weight decay of the Kolen-Pollack rule.
        grid_depth: Number of layers in the runs on the grid and in noisy runs.
        grid_steps: Number of steps in the runs on the grid.
        learning_rates: Learning rates of the grid.
        strengths: Rule strengths of the grid: factors on the coefficients that align feedback weights.
        noises: Standard deviations of the noise in the updates of feedback weights.
        seeds: Number of initialisations.
        seed: Seed of the batches.
    """

    data: Labelled
    test: Labelled
    depths: Sequence[int]
    width: int
    training: CreditTraining
    kolen_pollack_decay: float
    grid_depth: int
    grid_steps: int
    learning_rates: Sequence[float]
    strengths: Sequence[float]
    noises: Sequence[float]
    seeds: int
    seed: int

    def over_depth(self) -> dict[str, np.ndarray]:
        """Loss, accuracy and angles by rule, depth and seed."""
        found = [self._every_rule(depth) for depth in self.depths]
        return {name: np.stack([each[name] for each in found], axis=1) for name in found[0]}

    def over_grid(self, draw: Callable[[int], FeedbackNetwork]) -> np.ndarray:
        """Test accuracy by rule, learning rate, strength and seed; diverged networks have chance accuracy."""
        axes = GRID_RULES, self.learning_rates, self.strengths, range(self.seeds)
        cells = list(itertools.product(*axes))
        base = dataclasses.replace(self.training, steps=self.grid_steps, records=1)
        record = self._train(
            [draw(seed) for *_, seed in cells],
            [_strengthened(CREDIT_RULES[name], strength) for name, _, strength, _ in cells],
            [dataclasses.replace(base, learning_rate=rate) for _, rate, _, _ in cells],
        )
        return self._accuracy(record).reshape([len(axis) for axis in axes])

    def with_noise(self) -> dict[str, np.ndarray]:
        """Accuracy, measured angle and predicted angle of symmetric alignment by noise and seed."""
        networks = [self.mlp(self.grid_depth, seed) for _ in self.noises for seed in range(self.seeds)]
        settings = [
            dataclasses.replace(self.training, feedback_noise=noise) for noise in self.noises for _ in range(self.seeds)
        ]
        record, ends = self._train(networks, [CREDIT_RULES[_NOISY]] * len(networks), settings, return_networks=True)
        floors = [
            np.mean([self._floor(layer.weights, each.feedback_noise) for layer in end.layers[1:]])
            for end, each in zip(ends, settings, strict=True)
        ]
        shape = (len(self.noises), self.seeds)
        measured = record["weight_angle"].isel(step=-1).mean("layer").to_numpy()
        values = {"noisy_accuracy": self._accuracy(record), "noisy_angle": measured, "noise_floor": np.array(floors)}
        return {name: each.reshape(shape) for name, each in values.items()}

    def mlp(self, depth: int, seed: int) -> FeedbackNetwork:
        """An MLP in single precision."""
        widths = (math.prod(_IMAGE), *(self.width,) * (depth - 1), self.test.output_dimension)
        return _single(feedback_mlp(widths, seed=seed))

    def convolutional(self, seed: int) -> FeedbackNetwork:
        """A convolutional network of the same number of layers, in single precision."""
        hidden = (self.width,) * (self.grid_depth - len(_CHANNELS) - 1)
        outputs = self.test.output_dimension
        return _single(feedback_convolutional(_IMAGE, outputs, channels=_CHANNELS, hidden=hidden, seed=seed))

    def _every_rule(self, depth: int) -> dict[str, np.ndarray]:
        """Loss, accuracy and angles by rule and seed."""
        members = list(itertools.product(CREDIT_RULES.values(), range(self.seeds)))
        stronger = dataclasses.replace(self.training, weight_decay=self.kolen_pollack_decay)
        record = self._train(
            [self.mlp(depth, seed) for _, seed in members],
            [rule for rule, _ in members],
            [stronger if rule.feedback == "equal updates" else self.training for rule, _ in members],
        )
        # Later records are averaged, because feedback weights fluctuate from step to step.
        later = record.isel(step=slice(1 + self.training.records // 2, None))
        values = {
            "loss": record["loss"].isel(step=-1).to_numpy().astype(float),
            "test_accuracy": self._accuracy(record),
            "weight_angle": later["weight_angle"].mean(("step", "layer"), skipna=False).to_numpy(),
            "gradient_angle": later["gradient_angle"].mean("step", skipna=False).to_numpy(),
        }
        return {name: each.reshape(len(CREDIT_RULES), self.seeds) for name, each in values.items()}

    def _train(
        self,
        networks: Sequence[FeedbackNetwork],
        rules: Sequence[CreditRule],
        settings: Sequence[CreditTraining],
        **options: Any,
    ) -> Any:
        with warnings.catch_warnings():
            # Fragility is measured; diverged members count as networks that guess.
            warnings.simplefilter("ignore", DivergenceWarning)
            return train_with_feedback(self.data, networks, rules, settings, test=self.test, seed=self.seed, **options)

    def _accuracy(self, record: xr.Dataset) -> np.ndarray:
        return record["test_accuracy"].isel(step=-1).fillna(1 / self.test.output_dimension).to_numpy()

    def _floor(self, weights: np.ndarray, noise: float) -> float:
        rule = CREDIT_RULES[_NOISY].coefficients
        rates, limit = np.full(weights.shape, rule.decay), rule.self_alignment / rule.decay * np.asarray(weights, float)
        return float(noise_misalignment(limit, rates, feedback_rate=self.training.feedback_rate, noise=noise).angle)


def _strengthened(rule: CreditRule, factor: float) -> CreditRule:
    """The rule with rescaled coefficients of the primitives that align feedback weights."""
    parts = rule.coefficients
    scaled = dataclasses.replace(
        parts, amplification=factor * parts.amplification, self_alignment=factor * parts.self_alignment
    )
    return dataclasses.replace(rule, coefficients=scaled)


def _single(network: FeedbackNetwork) -> FeedbackNetwork:
    return jax.tree.map(lambda leaf: leaf.astype(np.float32), network)
