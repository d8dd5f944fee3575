"""MLPs trained by Adam to classify images, with different scale factors."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from dynascope.networks import MLP
from dynascope.probes.features import kappa_cka
from dynascope.probes.last_layer import layer_metrics
from dynascope.studies.grokking.grokking_digits import scaled_network
from dynascope.studies.grokking.grokking_digits.images_in_rows import ImagesInRows
from dynascope.studies.grokking.grokking_digits.twins import ScaleFactors
from dynascope.tasks import Task
from dynascope.theory.grokking import grokking_delay
from dynascope.theory.regimes import OptimizerSettings
from dynascope.training.descend import Descent, descend

__all__ = ["ScaledRuns", "initial_network", "train_scaled"]


def initial_network(
    run: ScaleFactors, widths: Sequence[int], *, weight_decay: float, seed: int
) -> scaled_network.ScaledError:
    """An initial tanh MLP with its scale factors, in single precision.

    Example:
        >>> network = initial_network(ScaleFactors(1.0, 2.0, first_layer=0.5), (3, 4, 2), weight_decay=0.1, seed=0)
        >>> float(network.target_scale), [float(each) for each in network.rates.weights]
        (2.0, [0.5, 1.0])
    """
    network = MLP(widths, activation="tanh", scale=run.weight, seed=seed)
    hidden = len(widths) - 2
    weights = (run.first_layer, *(1.0,) * (hidden - 1), run.last_layer)
    factors = (*weights, *(1.0,) * hidden, run.last_layer)
    given = OptimizerSettings("adam", 1.0, coupled_decay=weight_decay, epsilon=scaled_network.EPSILON)
    matched = [run.settings(given, factor) for factor in factors]
    arrays = ([getattr(each, name) for each in matched] for name in ("learning_rate", "coupled_decay", "epsilon"))
    structure = jax.tree.structure(network)
    started = jax.tree.map(np.multiply, network, jax.tree.unflatten(structure, factors))
    rates, decays, epsilons = (jax.tree.unflatten(structure, each) for each in arrays)
    whole = scaled_network.ScaledError(started, rates, decays, epsilons, run.target, run.input, run.output)
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), whole)


def train_scaled(
    networks: Sequence[scaled_network.ScaledError],
    inputs: np.ndarray,
    targets: np.ndarray,
    *,
    recorded: np.ndarray,
    learning_rate: float,
    batch_size: int,
    seed: int,
) -> tuple[np.ndarray, list[Any]]:
    """Train all networks with the same batches in one program.

    Args:
        networks: Networks that differ in their scale factors.
        inputs: Inputs, shape (n, d).
        targets: Targets before scaling, shape (n, c).
        recorded: Recorded steps, from 0 to the last.
        learning_rate: η.
        batch_size: Images per step.
        seed: Seed of the batches.

    Returns:
        The losses, shape (networks, steps), and the snapshots of each network at these steps.
    """
    # The network returns its error, so that the factor on the targets is not a constant of the compiled program.
    record = descend(
        Task(np.concatenate([inputs, targets], axis=1), np.zeros_like(targets)),
        networks,
        Descent(
            scaled_network.adam_with_decay,
            learning_rate=learning_rate,
            steps=int(recorded[-1]),
            batches=batch_size,
            save=recorded,
            statistics=scaled_network.STATISTICS,
        ),
        seed=seed,
    )
    rows = record["weights"].to_numpy()
    kept = [scaled_network.unravelled(start, weights) for start, weights in zip(networks, rows, strict=True)]
    return record["loss"].to_numpy().astype(float), kept


@dataclasses.dataclass(frozen=True)
class ScaledRuns:
    """Trains one network with several sets of scale factors.

    Attributes:
        images: Images for training and testing.
        runs: Scale factors by name of the run.
        hidden: Widths of the hidden layers.
        weight_decay: λ, before it is scaled.
        learning_rate: η.
        batch_size: Images per step.
        recorded: Recorded steps, from 0 to the last.
        thresholds: Training accuracy that counts as fitted, and test accuracy that counts as generalising.
    """

    images: ImagesInRows
    runs: Mapping[str, ScaleFactors]
    hidden: Sequence[int]
    weight_decay: float
    learning_rate: float
    batch_size: int
    recorded: np.ndarray
    thresholds: tuple[float, float]

    def measured(self, names: Collection[str], seed: int) -> dict[str, dict[str, Any]]:
        """Train every run from one seed; return the loss of each run and, for the named runs, all metrics."""
        networks = [self._network(name, seed) for name in self.runs]
        options = {"learning_rate": self.learning_rate, "batch_size": self.batch_size, "recorded": self.recorded}
        losses, kept = train_scaled(networks, self.images.inputs, self.images.targets, seed=seed, **options)
        return {
            name: {"loss": loss} | (self._measured(each) if name in names else {})
            for name, loss, each in zip(self.runs, losses, kept, strict=True)
        }

    def blank_weights(self, name: str, seeds: Sequence[int]) -> np.ndarray:
        """Predicted root mean square of the blank weights, relative to initialisation, shape (seeds, records)."""
        rows = self.images.blank
        start = np.array([self._network(name, seed).network.weights[0][rows] for seed in seeds], float)
        with jax.enable_x64(True):
            steps = np.arange(1, self.recorded[-1] + 1)
            size = np.asarray(scaled_network.decay_alone(start, self.weight_decay, self.learning_rate, steps))
        first = _root_mean_square(start)
        return np.maximum(np.vstack([first, size]), self.learning_rate)[self.recorded].T / first[:, None]

    def _network(self, name: str, seed: int) -> scaled_network.ScaledError:
        widths = (self.images.inputs.shape[1], *self.hidden, self.images.targets.shape[1])
        return initial_network(self.runs[name], widths, weight_decay=self.weight_decay, seed=seed)

    def _measured(self, snapshots: Any) -> dict[str, Any]:
        """Metrics at every recorded step, and feature metrics when the training images are fitted and at the end."""
        images = self.images
        known = scaled_network.accuracy(snapshots, images.inputs, images.targets)
        test_known = scaled_network.accuracy(snapshots, images.test_inputs, images.test_targets)
        steps = self.recorded[1:]  # excluding step zero, because logarithms are taken
        delay = grokking_delay(steps, known[1:], test_known[1:], *self.thresholds).recorded(float(steps[-1]))
        delay["delay_decades"] = math.log10(delay["test_step"] / delay["train_step"])
        learned = self.recorded.tolist().index(delay["train_step"])
        found = {"accuracy": known, "test_accuracy": test_known, **delay}
        if len(images.blank):
            size = _root_mean_square(snapshots.network.weights[0][:, images.blank].astype(float))
            found["blank_weight"] = np.maximum(size, self.learning_rate) / size[0]
        for when, number in (("before", learned), ("after", -1)):
            each = jax.tree.map(lambda leaf, at=number: np.asarray(leaf[at], float), snapshots)
            found |= {f"{quantity}_{when}": value for quantity, value in self._features(each).items()}
        return found

    def _features(self, network: Any) -> dict[str, float]:
        """Feature metrics of a network on the training images, and κ on the test images."""
        with jax.enable_x64(True):
            trained, tested = (
                jax.device_get(scaled_network.features_and_outputs(network, inputs.astype(float)))
                for inputs in (self.images.inputs, self.images.test_inputs)
            )
        found = layer_metrics(*trained, bias=True)
        return {
            "kappa": float(found["kappa_cka"]),
            "test_kappa": float(kappa_cka(*tested)),
            "effective_dimension": float(found["effective_dimension"]),
            "total_utilization": float(found["utilization"].sum()),
        }


def _root_mean_square(weights: np.ndarray) -> np.ndarray:
    return np.sqrt(np.mean(weights**2, axis=(1, 2)))
