"""Networks pruned at initialisation by each method, then trained."""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import optax

from dynascope.flows import track
from dynascope.flows.progress import announce
from dynascope.interventions import critical_compression, masked, prune
from dynascope.interventions.prune import default_compressions
from dynascope.interventions.pruning_scores import Method
from dynascope.networks import MLP, VGG16, Convolutional, ResNet18
from dynascope.tasks import Labelled
from dynascope.tasks.data.labelled_images import LabelledImages, labelled_images
from dynascope.training import Batches, Descent, descend
from dynascope.training.step_time import formatted_duration, seconds_of_step
from dynascope.validation import require

__all__ = ["METHODS", "NETWORKS", "Measured", "PrunedNetworks"]

NETWORKS = ("dense", "convolutional", "residual", "vgg")
METHODS: tuple[Method, ...] = ("synflow", "snip", "grasp", "magnitude", "random")
_LARGE = ("residual", "vgg")
_EACH = 10  # samples per class for SNIP and GraSP
_HE = 2**0.5  # scale for ReLU networks


class Measured(NamedTuple):
    """Measurements of all networks.

    Attributes:
        critical: ρ_cr, shape (networks, methods, seeds).
        maximal: ρ_max, shape (networks,).
        paths: Whether a path remains, shape (networks, methods, compressions, seeds).
        accuracy: Accuracy on test images after training, in the same shape.
        loss: Training loss after training, in the same shape.
    """

    critical: np.ndarray
    maximal: np.ndarray
    paths: np.ndarray
    accuracy: np.ndarray
    loss: np.ndarray


@dataclasses.dataclass(frozen=True)
class PrunedNetworks:
    """Networks pruned at initialisation by each method, then trained by Adam on images.

    Attributes:
        data: "digits", or the path to labelled images.
        networks: Names of the architectures.
        compressions: Compressions ρ of the trained networks.
        rounds: Rounds of SynFlow; the other methods prune once.
        width: Number of channels in the first convolution of the residual and VGG networks.
        samples: Number of training images.
        test_samples: Maximum number of test images.
        steps: Number of training steps.
        batch_size: Samples per step.
        learning_rate: Learning rate of Adam.
        starts: Number of initialisations.
        seed: Seed of the first initialisation; the other initialisations use consecutive seeds.
    """

    data: str
    networks: list[str]
    compressions: list[float]
    rounds: int
    width: int
    samples: int
    test_samples: int
    steps: int
    batch_size: int
    learning_rate: float
    starts: int
    seed: int

    def measure(self) -> Measured:
        """Measure the critical compressions, then prune and train the networks."""
        if any(name in _LARGE for name in self.networks):
            announce(self.time_estimate())
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

    def time_estimate(self) -> str:
        """A sentence that states the expected run time, from the measured times of a round and of a training step."""
        parts = []
        for name in self.networks:
            rounds, steps = self.counts(name)
            parts.append(rounds * self._seconds_of_round(name) + steps * self._seconds_of_step(name))
        return f"The run will take about {formatted_duration(sum(parts))} on this machine, without compilation."

    def counts(self, name: str) -> tuple[int, int]:
        """Number of rounds of pruning and of training steps of a network, over all methods and initialisations."""
        compressions = len(default_compressions(self.maximal(name))) + len(self.compressions)
        # Every pruning evaluates the scores in each round, and once more to find the remaining paths.
        rounds = compressions * (self.rounds + 1 + 2 * (len(METHODS) - 1))
        return self.starts * rounds, self.starts * len(METHODS) * len(self.compressions) * self.steps

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
        task, test = self._tasks
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
        task, _ = self._tasks
        chosen = np.concatenate([np.flatnonzero(task.labels == label)[:_EACH] for label in range(self.images.classes)])
        return {
            "data": (task.inputs[chosen], task.labels[chosen]) if method in ("snip", "grasp") else None,
            "protect": ["shortcut"] if name == "residual" else [],
            "rounds": self.rounds if method == "synflow" else 1,
        }

    def _network(self, name: str, seed: int) -> Any:
        shape, classes = self.images.inputs.shape[1:], self.images.classes
        if name == "dense":
            return MLP((math.prod(shape), 100, 100, 30, 100, classes), bias=False, scale=_HE, seed=seed)
        if name == "convolutional":
            return Convolutional(shape[:2], classes, scale=_HE, seed=seed)
        kind = ResNet18 if name == "residual" else VGG16
        return kind(shape, classes, width=self.width, seed=seed)

    def _seconds_of_round(self, name: str) -> float:
        network, seconds = self._network(name, self.seed), []
        protect = self._options(name, "synflow")["protect"]
        for rounds in (1, 1, 4):  # the first run compiles
            begun = time.perf_counter()
            critical_compression(network, compressions=[2.0], rounds=rounds, protect=protect)
            seconds.append(time.perf_counter() - begun)
        return max(seconds[2] - seconds[1], 0.0) / 3

    def _seconds_of_step(self, name: str) -> float:
        task, _ = self._tasks
        with jax.enable_x64(False):
            return seconds_of_step(task, jax.tree.map(_single, self._network(name, self.seed)), self.batch_size)

    @functools.cached_property
    def _optimizer(self) -> Any:
        return masked(optax.adam(self.learning_rate))

    @functools.cached_property
    def images(self) -> LabelledImages:
        """The training and test images."""
        found = labelled_images(self.data, self.samples, self.test_samples, self.seed)
        require(
            found.inputs.shape[-1] == 1 or "convolutional" not in self.networks,
            "networks contains convolutional, which takes images with one channel, but the images have more",
            argument="networks",
            value=self.networks,
            remedy='choose "dense", "residual" or "vgg"',
        )
        return found

    @functools.cached_property
    def _tasks(self) -> tuple[Labelled, Labelled]:
        """Training and test images in rows."""
        found = self.images
        names = tuple(f"class {label}" for label in range(found.classes))
        parts = (found.inputs, found.labels), (found.test_inputs, found.test_labels)
        train, test = (Labelled(x.reshape(len(x), -1), labels, names, name=found.name) for x, labels in parts)
        return train, test


def _single(leaf: Any) -> Any:
    return np.asarray(leaf, np.float32) if eqx.is_inexact_array(leaf) else leaf
