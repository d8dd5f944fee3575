"""Networks trained on digits with true or random labels, and their measures of neural collapse."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np

from dynascope.flows import track
from dynascope.networks import MLP, Convolutional
from dynascope.studies.features.neural_collapse.collapse_measures import classifier_collapse
from dynascope.studies.features.relabelled_digits import LABELS, relabelled_digits
from dynascope.tasks import Task
from dynascope.training.descend import Descent, descend
from dynascope.training.optimizers import annealed

__all__ = ["NETWORKS", "CollapsingNetworks"]

NETWORKS = ("convolutional", "mlp")
_RECORDS = 20  # number of recorded steps


@dataclasses.dataclass(frozen=True)
class CollapsingNetworks:
    """Networks to be trained by Adam on digits.

    Attributes:
        networks: Names of the networks, from "convolutional" and "mlp".
        labels: Kinds of labels, from `relabelled_digits.LABELS`.
        samples: Number of training digits; an equal number of others is held out.
        width: Number of features of the networks.
        learning_rate: Initial learning rate, with cosine decay to zero.
        weight_decay: λ in the term ½ λ‖θ‖² of the loss.
        steps: Number of training steps.
        batch_size: Samples per step.
        starts: Number of runs of each network, with different initial weights and batches.
        seed: Seed of the labels and of the first run; the other runs use consecutive seeds.
    """

    networks: Sequence[str]
    labels: Sequence[str]
    samples: int
    width: int
    learning_rate: float
    weight_decay: float
    steps: int
    batch_size: int
    starts: int
    seed: int

    def measure(self) -> dict[str, Any]:
        """Train the networks, and return the dimensions and values of each metric over training steps, by name."""
        if not self.networks or not self.labels:
            return {}
        # Training is twice as fast in single precision.
        with jax.enable_x64(False):
            runs = [
                [
                    [self._trained(network, each, start) for start in track(self.seeds, "seeds")]
                    for each in track(self.labels, "labels")
                ]
                for network in track(self.networks, "networks")
            ]
        return {
            f"network_{name}": (
                ("architecture", "run", "seed", "step"),
                np.array([[[run[name] for run in starts] for starts in row] for row in runs], float),
            )
            for name in runs[0][0][0]
        }

    @property
    def seeds(self) -> range:
        """Seeds of the runs."""
        return range(self.seed, self.seed + self.starts)

    @functools.cached_property
    def recorded(self) -> np.ndarray:
        """Steps at which the networks are measured."""
        return np.unique([0, *np.geomspace(1, self.steps, _RECORDS - 1).round().astype(int), self.steps])

    def _trained(self, name: str, labels: str, start: int) -> dict[str, np.ndarray]:
        data = relabelled_digits(labels, self.samples, self.seed)
        pixels, outputs = data.inputs.shape[1], data.targets.shape[1]
        network: Any = MLP((pixels, self.width, self.width, outputs), seed=start)
        if name == "convolutional":
            network = Convolutional((8, 8), outputs, width=self.width, seed=start)
        run = descend(
            Task(data.inputs[: self.samples], data.targets),
            jax.tree.map(lambda leaf: leaf.astype(np.float32) if eqx.is_inexact_array(leaf) else leaf, network),
            Descent(
                annealed("adam", self.steps, weight_decay=self.weight_decay),
                learning_rate=self.learning_rate,
                steps=self.steps,
                batches=self.batch_size,
                save=self.recorded,
                statistics={
                    "features": (self._seen, ("sample", "feature")),
                    "classifier": (_last_weights, ("feature", "target")),
                    "bias": (_last_bias, ("target",)),
                },
            ),
            seed=start,
        )
        layers = (run[each].to_numpy().astype(float) for each in ("features", "classifier", "bias"))
        known = {"labels": data.labels, "held_out": data.held_out, "levels": data.levels}
        found = [classifier_collapse(*layer, **known) for layer in zip(*layers, strict=True)]
        return {"loss": run["loss"].to_numpy()} | {name: np.array([each[name] for each in found]) for name in found[0]}

    @functools.cached_property
    def _seen(self) -> Any:
        """The function that computes the features of all digits, cached so that all labels share one program."""
        inputs = relabelled_digits(LABELS[0], self.samples, self.seed).inputs.astype("float32")
        return lambda network: network.features(inputs)


def _last_weights(network: Any) -> Any:
    return network.classifier


def _last_bias(network: Any) -> Any:
    return network.classifier_bias
