"""Networks trained by AdamW on the table of an operation modulo p, and their metrics during training."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Literal

import jax
import numpy as np
import optax
from jax.tree_util import Partial

from dynascope.networks import Transformer, TwoLayer
from dynascope.studies.grokking.grokking_modular.measures import classifier_metrics, measure
from dynascope.studies.grokking.grokking_modular.modular_names import other_names, renamed_task
from dynascope.studies.grokking.grokking_modular.renamed_network import renamed_network
from dynascope.studies.grokking.grokking_modular.snapshots import descend_keeping
from dynascope.tasks import ModularArithmetic

__all__ = ["HEADS", "ModularRuns"]

HEADS = 4


@dataclasses.dataclass(frozen=True)
class ModularRuns:
    """Networks trained with several seeds, each on a different split of the table.

    Attributes:
        operation: Operation whose table is learned.
        p: The modulus.
        train_fraction: Fraction of the table used for training.
        network: "relu" or "quadratic" (two layers), or "transformer" (one block with `HEADS` heads).
        width: Number of hidden neurons of a two-layer network; the residual stream of the transformer is a quarter as
            wide.
        loss: Training loss.
        learning_rate: η of AdamW with β = (0.9, 0.98) and full-batch gradients.
        weight_decay: λ of AdamW: each step shrinks the weights by the factor 1 − ηλ.
        steps: Number of steps.
        times: Number of recorded steps, denser early in training.
        seeds: Number of runs.
        seed: Seed of the first run; the other runs use consecutive seeds.
    """

    operation: Literal["addition", "subtraction", "multiplication", "division"]
    p: int
    train_fraction: float
    network: Literal["relu", "quadratic", "transformer"]
    width: int
    loss: Literal["cross_entropy", "squared"]
    learning_rate: float
    weight_decay: float
    steps: int
    times: int
    seeds: int
    seed: int

    def _train(self, networks: list[Any], tasks: list[Any], steps: Any, kind: Any = np.float32) -> Any:
        """Train; return the networks at the given steps, stacked with leading dimensions (networks, steps)."""
        # λ is an array, so that it is an argument of the compiled program, which all runs share.
        descent = Partial(optax.adamw, b1=0.9, b2=0.98, weight_decay=kind(self.weight_decay))
        options = {"learning_rate": self.learning_rate, "loss": self.loss, "optimizer": descent}
        return descend_keeping(tasks, networks, steps, kind=kind, **options)

    def curves(self) -> dict[str, np.ndarray]:
        """Train and return all metrics over seeds and steps."""
        tasks, tests = [each.train for each in self.tables], [each.test for each in self.tables]
        every, found = self._train(self._networks, tasks, self.recorded), []
        for place, step in enumerate(self.recorded):
            networks = jax.tree.map(lambda leaf, place=place: leaf[:, place], every)
            measured = measure(networks, tasks, tests, self.loss)
            found.append(classifier_metrics(measured, tasks, self.loss, time=float(step) * self.learning_rate))
            if self.has_unused:
                found[-1]["unused_weight"] = np.linalg.norm(networks.first[:, self.p], axis=1)
        curves = {name: np.stack([each[name] for each in found], axis=1) for name in found[0]}
        if self.has_unused:
            curves["unused_weight"] /= curves["unused_weight"][:, :1]
        return {name: values.astype(float) for name, values in curves.items()}

    def renamed_losses(self, steps: int) -> np.ndarray:
        """Ratio of the losses with renamed and original numbers, after the given number of steps."""
        names, tests = other_names(self.operation, self.p), [each.test for each in self.tables]
        old = self._networks, [each.train for each in self.tables]
        new = [renamed_network(each, names) for each in self._networks], [renamed_task(e, names) for e in self.tables]
        losses = []
        for networks, tasks in (old, new):
            end = jax.tree.map(lambda leaf: leaf[:, -1], self._train(networks, tasks, [steps], np.float64))
            # The test samples are irrelevant here; using those of the other runs allows the same program to be reused.
            losses.append(measure(end, tasks, tests, self.loss).loss)
        return losses[1] / losses[0]

    @functools.cached_property
    def tables(self) -> list[ModularArithmetic]:
        """The table and its split for every seed."""
        return [ModularArithmetic(self.operation, self.p, self.train_fraction, seed=seed) for seed in self._seeds]

    @functools.cached_property
    def _networks(self) -> list[Any]:
        p, seeds = self.p, self._seeds
        if self.network != "transformer":
            return [TwoLayer(2 * p, self.width, p, activation=self.network, seed=seed) for seed in seeds]
        return [Transformer(p, 2, p, width=self.width // 4, heads=HEADS, seed=seed) for seed in seeds]

    @functools.cached_property
    def recorded(self) -> np.ndarray:
        """Recorded steps, denser early in training."""
        return np.unique((self.steps * np.linspace(0, 1, self.times) ** 2).round().astype(int))

    @property
    def _seeds(self) -> range:
        return range(self.seed, self.seed + self.seeds)

    @property
    def has_unused(self) -> bool:
        """Whether some weights do not affect the output for any sample."""
        return self.operation == "division" and self.network != "transformer"
