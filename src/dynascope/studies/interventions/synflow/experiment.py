"""Networks pruned at initialisation by each method, then trained."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import optax

from dynascope.flows import track
from dynascope.interventions import critical_compression, masked, prune
from dynascope.interventions.pruning_scores import Method
from dynascope.networks import MLP, VGG16, Convolutional, ResNet18
from dynascope.tasks import Labelled, digits
from dynascope.training import Batches, Descent, descend

__all__ = ["METHODS", "NETWORKS", "Measured", "PrunedNetworks"]

NETWORKS = ("dense", "convolutional", "residual", "vgg")
METHODS: tuple[Method, ...] = ("synflow", "snip", "grasp", "magnitude", "random")
_CLASSES, _SIDE = 10, 8
_EACH = 10  # samples per class for SNIP and GraSP
_HE = 2**0.5  # scale for ReLU networks


class Measured(NamedTuple):
    """Measurements of all networks.

    Attributes:
        critical: ρ_cr, shape (networks, methods, seeds).
        maximal: ρ_max, shape (networks,).
        paths: Whether a path remains, shape (networks, methods, compressions, seeds).
        accuracy: Accuracy on held-out digits after training, in the same shape.
        loss: Training loss after training, in the same shape.
    """

    critical: np.ndarray
    maximal: np.ndarray
    paths: np.ndarray
    accuracy: np.ndarray
    loss: np.ndarray


@dataclasses.dataclass(frozen=True)
class PrunedNetworks:
    """Networks pruned at initialisation by each method, then trained by Adam on digits.

    Attributes:
        networks: Names of the architectures.
        compressions: Compressions ρ of the trained networks.
        rounds: Rounds of SynFlow; the other methods prune once.
        width: Number of channels in the first convolution of the residual and VGG networks.
        samples: Number of training digits; all others are held out.
        steps: Number of training steps.
        batch_size: Samples per step.
        learning_rate: Learning rate of Adam.
        starts: Number of initialisations.
        seed: Seed of the first initialisation; the other initialisations use consecutive seeds.
    """

    networks: list[str]
    compressions: list[float]
    rounds: int
    width: int
    samples: int
    steps: int
    batch_size: int
    learning_rate: float
    starts: int
    seed: int

    def measure(self) -> Measured:
        """Measure the critical compressions, then prune and train the networks."""
        critical, maximal, trained = [], [], []
        for name in track(self.networks, "networks"):
            found = [[self._critical(name, method, seed) for seed in self.seeds] for method in METHODS]
            critical.append([[each.layers for each in row] for row in found])
            maximal.append(found[0][0].maximal)
            trained.append([self._trained(name, each) for each in track(self.compressions, "compressions")])
        paths, accuracy, loss = (
            np.stack([np.stack([each[part] for each in row], axis=1) for row in trained]) for part in range(3)
        )
        return Measured(np.array(critical), np.array(maximal), paths, accuracy, loss)

    def maximal(self, name: str) -> float:
        """ρ_max of a network: the number of prunable weights divided by the number of layers."""
        network = self._network(name, self.seed)
        options = {each: value for each, value in self._options(name, "magnitude").items() if each != "data"}
        return critical_compression(network, "magnitude", compressions=[1.0], **options).maximal

    @property
    def seeds(self) -> range:
        """Seeds of the initial weights."""
        return range(self.seed, self.seed + self.starts)

    def _critical(self, name: str, method: Method, seed: int) -> Any:
        return critical_compression(self._network(name, seed), method, **self._options(name, method), seed=seed)

    def _trained(self, name: str, compression: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Existence of paths, accuracy and loss, each of shape (methods, seeds), after training one ensemble."""
        pruned = [
            prune(
                self._network(name, seed),
                method,
                compression=compression,
                allow_collapse=True,
                seed=seed,
                **self._options(name, method),
            )
            for method in METHODS
            for seed in self.seeds
        ]
        task, test = self._digits
        # Training is twice as fast in single precision.
        with jax.enable_x64(False):
            record = descend(
                task,
                [jax.tree.map(_single, each.network) for each in pruned],
                Descent(
                    self._optimizer,
                    steps=self.steps,
                    batches=Batches(self.batch_size),
                    loss="cross_entropy",
                    test=test,
                    save=[0, self.steps],
                ),
                seed=self.seed,
            )
        shape = len(METHODS), self.starts
        accuracy, loss = (record[each].to_numpy()[:, -1].astype(float) for each in ("test_accuracy", "loss"))
        paths = np.array([each.path_exists for each in pruned])
        return paths.reshape(shape), accuracy.reshape(shape), loss.reshape(shape)

    def _options(self, name: str, method: Method) -> dict[str, Any]:
        task, _ = self._digits
        chosen = np.concatenate([np.flatnonzero(task.labels == label)[:_EACH] for label in range(_CLASSES)])
        return {
            "data": (task.inputs[chosen], task.labels[chosen]) if method in ("snip", "grasp") else None,
            "protect": ["shortcut"] if name == "residual" else [],
            "rounds": self.rounds if method == "synflow" else 1,
        }

    def _network(self, name: str, seed: int) -> Any:
        if name == "dense":
            return MLP((_SIDE**2, 100, 100, 30, 100, _CLASSES), bias=False, scale=_HE, seed=seed)
        if name == "convolutional":
            return Convolutional((_SIDE, _SIDE), _CLASSES, scale=_HE, seed=seed)
        kind = ResNet18 if name == "residual" else VGG16
        return kind((_SIDE, _SIDE), _CLASSES, width=self.width, seed=seed)

    @functools.cached_property
    def _optimizer(self) -> Any:
        return masked(optax.adam(self.learning_rate))

    @functools.cached_property
    def _digits(self) -> tuple[Labelled, Labelled]:
        """Training digits and held-out digits, in single precision."""
        task = digits()
        rows = np.random.default_rng(self.seed).permutation(task.samples)
        inputs, labels = task.inputs[rows].astype(np.float32), np.argmax(task.targets[rows], axis=1)
        names = tuple(f"digit {label}" for label in range(_CLASSES))
        parts = slice(self.samples), slice(self.samples, None)
        train, test = (Labelled(inputs[part], labels[part], names, name="digits") for part in parts)
        return train, test


def _single(leaf: Any) -> Any:
    return np.asarray(leaf, np.float32) if eqx.is_inexact_array(leaf) else leaf
