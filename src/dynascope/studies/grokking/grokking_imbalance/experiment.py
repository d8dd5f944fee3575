"""Training of all networks on modular addition, by AdamW and by SGD, at every relative scale."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import numpy as np
import optax
from jax.tree_util import Partial

from dynascope.compilation import filter_jit
from dynascope.flows import track
from dynascope.studies.grokking.grokking_imbalance.rescaled_networks import rescaled_transformer, rescaled_two_layer
from dynascope.tasks import ModularArithmetic, Task
from dynascope.theory.grokking import grokking_delay
from dynascope.training.descend import Descent, descend
from dynascope.training.losses import LossName

__all__ = ["HEADS", "SETTINGS", "ImbalanceRuns"]

HEADS = 4
SETTINGS = ("two-layer, AdamW", "two-layer, SGD", "transformer, AdamW", "transformer, SGD")
_MOMENTUM, _BETAS = 0.9, (0.9, 0.98)
_LARGEST = 1.0  # norm of a gradient in SGD; without the limit, transformers diverge after long training
_LOSSES: dict[str, LossName] = {"two-layer": "squared", "transformer": "cross_entropy"}


def correct(network: Any, inputs: Any, targets: Any) -> Any:
    """Whether the network classifies each pair of the table correctly, shape (pairs,)."""
    return network(inputs).argmax(axis=1) == targets.argmax(axis=1)


def sgd_with_decay(rate: Any, decay: Any) -> optax.GradientTransformation:
    """SGD with momentum 0.9 and gradients of norm at most one, to which the weight decay λ is added."""
    return optax.chain(
        optax.clip_by_global_norm(_LARGEST), optax.add_decayed_weights(decay), optax.sgd(rate, momentum=_MOMENTUM)
    )


def first_steps(steps: np.ndarray, train: np.ndarray, test: np.ndarray, level: float) -> dict[str, Any]:
    """Steps at which the training and the test accuracy first reach a level, or the last step.

    Args:
        steps: Evaluated steps, shape (records,).
        train: Training accuracy at these steps.
        test: Test accuracy.
        level: The level.
    """
    # The largest accuracy so far reaches the level at the same step, and `grokking_delay` rejects curves that fall.
    train, test = np.maximum.accumulate(train), np.maximum.accumulate(test)
    return grokking_delay(steps, train, test, level, level).recorded(float(steps[-1]))


@dataclasses.dataclass(frozen=True)
class ImbalanceRuns:
    """Networks trained by both optimisers at several relative scales, with several seeds.

    Attributes:
        p: The modulus.
        train_fraction: Fraction of the table used for training.
        relative_scales: Relative scales α, which include one.
        scale: Factor on all initial weights.
        width: Number of hidden neurons of the two-layer network.
        transformer_width: Width of the residual stream of the transformer.
        learning_rates: Learning rate of each of the `SETTINGS`.
        weight_decays: Weight decay of each of them.
        steps: Number of steps of each of them, a multiple of `records`.
        records: Number of evaluations after the first.
        threshold: Accuracy that counts as learned.
        seeds: Number of runs.
        seed: Seed of the first run; the other runs use consecutive seeds.
    """

    p: int
    train_fraction: float
    relative_scales: list[float]
    scale: float
    width: int
    transformer_width: int
    learning_rates: list[float]
    weight_decays: list[float]
    steps: list[int]
    records: int
    threshold: float
    seeds: int
    seed: int

    def trained(self) -> dict[str, Any]:
        """Train all networks. Arrays have the axes (setting, relative scale, seed, record), without the missing ones.

        Returns:
            `loss`, `accuracy` and `test_accuracy`; `train_step`, `test_step`, `fitted` and `generalised`, without the
            last axis; and `recorded_step`, shape (settings, records + 1).
        """
        runs = [self.setting(place) for place in track(range(len(SETTINGS)), "settings")]
        return {name: np.stack([run[name] for run in runs]) for name in runs[0]}

    def initial_projections(self) -> dict[str, np.ndarray]:
        """Projection ⟨f_α, f₁⟩/⟨f₁, f₁⟩ of the initial outputs on those at α = 1, for each kind of network.

        Returns:
            Arrays of shape (relative scales, seeds).
        """
        inputs = self.whole.inputs
        found = {}
        for kind in _LOSSES:
            even = [_outputs(self._network(kind, 1.0, seed), inputs) for seed in self._seeds]
            found[kind] = np.array(
                [
                    [
                        np.vdot(_outputs(self._network(kind, alpha, seed), inputs), base) / np.vdot(base, base)
                        for seed, base in zip(self._seeds, even, strict=True)
                    ]
                    for alpha in self.relative_scales
                ]
            )
        return found

    def setting(self, place: int) -> dict[str, np.ndarray]:
        """The arrays of `trained` for one of the `SETTINGS`, without their first axis."""
        kind, optimizer = SETTINGS[place].split(", ")
        members = [(alpha, at) for alpha in self.relative_scales for at in range(self.seeds)]
        steps = np.arange(self.records + 1) * (self.steps[place] // self.records)
        decay = np.float32(self.weight_decays[place])
        adamw = Partial(optax.adamw, b1=_BETAS[0], b2=_BETAS[1], weight_decay=decay)
        record = descend(
            [self.tables[at].train for _, at in members],
            [self._network(kind, alpha, self._seeds[at]) for alpha, at in members],
            Descent(
                adamw if optimizer == "AdamW" else Partial(sgd_with_decay, decay=decay),
                learning_rate=self.learning_rates[place],
                steps=int(steps[-1]),
                loss=_LOSSES[kind],
                save=steps,
                statistics={"correct": (correct, ("pair",))},
                reference=self.whole,
            ),
        )
        right = record["correct"].to_numpy()
        shape = len(self.relative_scales), self.seeds
        sides = [np.array([self.tables[at].trained for _, at in members])]
        sides.append(~sides[0])
        accuracies = [
            np.stack([each[:, mask].mean(axis=1) for each, mask in zip(right, side, strict=True)]) for side in sides
        ]
        delays = [first_steps(steps, train, test, self.threshold) for train, test in zip(*accuracies, strict=True)]
        return {
            "loss": record["loss"].to_numpy().astype(float).reshape(*shape, -1),
            "accuracy": accuracies[0].reshape(*shape, -1),
            "test_accuracy": accuracies[1].reshape(*shape, -1),
            **{
                name: np.array([each[name] for each in delays]).reshape(shape)
                for name in ("train_step", "test_step", "fitted", "generalised")
            },
            "recorded_step": steps,
        }

    def _network(self, kind: str, alpha: float, seed: int) -> Any:
        options = {"scale": self.scale, "seed": seed}
        if kind == "two-layer":
            network: Any = rescaled_two_layer(self.p, self.width, alpha, **options)
        else:
            network = rescaled_transformer(self.p, self.transformer_width, alpha, **options, heads=HEADS)
        return jax.tree.map(lambda leaf: leaf.astype(np.float32), network)

    @functools.cached_property
    def tables(self) -> list[ModularArithmetic]:
        """The table of sums and its split for every seed."""
        return [ModularArithmetic("addition", self.p, self.train_fraction, seed=seed) for seed in self._seeds]

    @functools.cached_property
    def whole(self) -> Task:
        """All pairs of the table."""
        table, ones = self.tables[0], np.eye(self.p)
        return Task(ones[table.pairs].reshape(-1, 2 * self.p), ones[table.results], name="all pairs")

    @property
    def _seeds(self) -> range:
        return range(self.seed, self.seed + self.seeds)


@filter_jit
def _computed(network: Any, inputs: Any) -> Any:
    return network(inputs)


def _outputs(network: Any, inputs: np.ndarray) -> np.ndarray:
    double = jax.tree.map(lambda leaf: leaf.astype(float), network)
    return np.asarray(_computed(double, inputs), float)
