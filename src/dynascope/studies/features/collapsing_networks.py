"""Networks on digits with labels that mean more or less, and what collapses in them while they train."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np

from dynascope.comparison import Claim
from dynascope.flows import descend
from dynascope.flows.steps.decay import annealed
from dynascope.networks import MLP, Convolutional
from dynascope.probes.collapsing import classifier_collapse
from dynascope.tasks import Task
from dynascope.tasks.data.relabelled import LABELS, relabelled_digits

__all__ = ["NETWORKS", "CollapsingNetworks"]

NETWORKS = ("convolutional", "mlp")
_LEARNED = 0.99  # of the labels of training, from which on classes are said to collapse
_RECORDS = 20  # steps at which networks are measured


@dataclasses.dataclass(frozen=True)
class CollapsingNetworks:
    """Networks that are trained by Adam on digits, and measured; attributes are fields of the study of this name."""

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
        """Their metrics over the steps of training, by name: dimensions and values."""
        if not self.networks or not self.labels:
            return {}
        # Networks of single precision train twice as fast.
        with jax.enable_x64(False):
            runs = [
                [[self._trained(network, each, start) for start in self.seeds] for each in self.labels]
                for network in self.networks
            ]
        return {
            f"network_{name}": (
                ("architecture", "run", "seed", "step"),
                np.array([[[run[name] for run in starts] for starts in row] for row in runs], float),
            )
            for name in runs[0][0][0]
        }

    def claimed(self, found: Mapping[str, Any]) -> list[Claim]:
        """That each network collapses on each kind of labels, by what `measure` found.

        Networks collapse once they have learned their labels; of those that have not, nothing is known.
        """
        nc1, learned = found["network_nc1"][1], found["network_accuracy"][1][..., -1] >= _LEARNED
        change = np.log10(nc1[..., -1] / nc1[..., 0])
        words = "log₁₀ of the spread within classes, over that between, falls by one or more"
        claims = []
        for i, network in enumerate(self.networks):
            for j, labels in enumerate(self.labels):
                statement = f"Classes collapse ({network}, {labels}): {words}."
                claim = Claim.of_runs(f"{network}, {labels}", statement, change[i, j], most=-1.0)
                unknown = dataclasses.replace(claim, low=-np.inf, high=np.inf)
                claims.append(claim if learned[i, j].all() else unknown)
        return claims

    @property
    def deciding(self) -> tuple[str, ...]:
        """Names of the claims on labels that are classes."""
        classes = [each for each in self.labels if each in LABELS[:3]]
        return tuple(f"{network}, {each}" for network in self.networks for each in classes)

    @property
    def seeds(self) -> range:
        """Seeds of the starts."""
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
            jax.tree.map(lambda leaf: leaf.astype(np.float32) if eqx.is_inexact_array(leaf) else leaf, network),
            Task(data.inputs[: self.samples], data.targets),
            steps=self.steps,
            learning_rate=self.learning_rate,
            optimizer=annealed("adam", self.steps, weight_decay=self.weight_decay),
            batch_size=self.batch_size,
            record_steps=self.recorded,
            statistics={
                "features": (self._seen, ("sample", "feature")),
                "classifier": (_last_weights, ("feature", "target")),
                "bias": (_last_bias, ("target",)),
            },
            seed=start,
        )
        layers = (run[each].to_numpy().astype(float) for each in ("features", "classifier", "bias"))
        known = {"labels": data.labels, "held_out": data.held_out, "levels": data.levels}
        found = [classifier_collapse(*layer, **known) for layer in zip(*layers, strict=True)]
        return {"loss": run["loss"].to_numpy()} | {name: np.array([each[name] for each in found]) for name in found[0]}

    @functools.cached_property
    def _seen(self) -> Any:
        """The function that gives the features of all digits; one object, so that one program serves all labels."""
        inputs = relabelled_digits(LABELS[0], self.samples, self.seed).inputs.astype("float32")
        return lambda network: network.features(inputs)


def _last_weights(network: Any) -> Any:
    return network.classifier


def _last_bias(network: Any) -> Any:
    return network.classifier_bias
