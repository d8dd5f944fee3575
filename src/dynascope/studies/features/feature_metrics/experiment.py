"""Trains all layers or only the last layer of a network, and predicts last-layer training."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import optax

from dynascope.flows import track
from dynascope.networks import MLP, Convolutional
from dynascope.networks.mlp import with_random_biases
from dynascope.probes.features import eigenfeatures
from dynascope.probes.last_layer import metrics_over_time
from dynascope.studies.features.feature_metrics.step import step_on_a_line
from dynascope.studies.features.linear_models import train_all_layers, train_last_layer
from dynascope.studies.features.relabelled_digits import balanced_digits
from dynascope.theory.scalar_networks import linear_mode_strength
from dynascope.training.optimizers import decayed

if TYPE_CHECKING:
    from dynascope.studies import Values
    from dynascope.studies.features.feature_metrics.study import FeatureMetrics

__all__ = ["FITTED", "LAST_LAYER", "Experiment"]

_CURVES = ("test_loss", "accuracy", "kappa_cka", "effective_dimension_utilization")
LAST_LAYER = ("loss", *_CURVES, "utilization", "cumulative_utilization")  # known exactly for last-layer training
_ALL_LAYERS = (
    *(*_CURVES, "effective_dimension", "effective_dimension_quality", "constant_overlap"),
    *("cumulative_utilization", "cumulative_quality", "normalised_intensity"),
)
FITTED = 0.1  # loss relative to its initial value below which training of all layers counts as finished


class Experiment:
    """Trains all layers, and the last layer alone, from one initialisation, and records features and outputs.

    Args:
        study: The study that defines the data, the network and the training.
    """

    def __init__(self, study: FeatureMetrics):
        self.study = study

    def trained(self) -> Values:
        """Train and measure the networks from every initialisation; curves show the first initialisation."""
        seeds = range(self.study.seed + 1, self.study.seed + self.study.seeds)
        with jax.enable_x64(True):
            others = [Experiment(dataclasses.replace(self.study, seed=seed, times=2)) for seed in seeds]
            starts = [each.runs() for each in track((self, *others), "initialisations")]
        runs = starts[0]
        last, full = (_along_axes(each) for each in runs)
        kinds = ["minimum features" if each["minimum_features"][-1] else "extended features" for each in runs]
        return {
            **{name: last[name] for name in LAST_LAYER},
            **{f"full_{name}": full[name] for name in _ALL_LAYERS},
            "end_cumulative_utilization": (("run", "mode"), [each["cumulative_utilization"][-1] for each in runs]),
            "end_kappa_cka": (("seed", "run"), [[each["kappa_cka"][-1] for each in start] for start in starts]),
            "fitted": ("seed", [full["loss"][-1] <= FITTED * full["loss"][0] for _, full in starts]),
            "regime": ("run", kinds),
        }

    def exact(self) -> Values:
        """Last-layer training, in which each mode of the initial features converges exponentially."""
        # The bias is a constant feature of value one.
        features = np.pad(self._features, ((0, 0), (0, 1)), constant_values=1.0)
        modes = eigenfeatures(features[: self.samples])
        values = features @ modes.directions
        outputs = self._features @ self._network.classifier + self._network.classifier_bias
        missing = values[: self.samples].T @ (self.data[1] - outputs)[: self.samples] / self.samples
        rates = np.where(modes.intensity > 0, modes.intensity, 1.0)
        learned = np.asarray(linear_mode_strength(self.times[:, None, None], missing, rates[:, None]))
        curves = _along_axes(self._measured([self._features] * len(self.times), outputs + values @ learned))
        return {name: curves[name] for name in LAST_LAYER}

    def runs(self) -> list[dict[str, np.ndarray]]:
        """The metrics over time of last-layer training and of training all layers."""
        study = self.study
        outputs = train_last_layer(self._network, self._features, self.data[1][: self.samples], self.times)
        options = {"learning_rate": study.learning_rate, "batches": study.batch_size, "seed": study.seed}
        # Weight decay is an array, so that it is an argument of the compiled program rather than a constant.
        options |= {"optimizer": decayed(optax.sgd, np.float64(study.weight_decay)), "recorded": self._steps}
        full = train_all_layers(self._network, *self.data, self.samples, **options)
        return [self._measured(*each) for each in (([self._features] * len(self.times), outputs), full)]

    def _measured(self, features: Any, outputs: np.ndarray) -> dict[str, np.ndarray]:
        """All metrics at all times, with overlaps on held-out digits or on the full grid of the step function."""
        study = self.study
        options = {"held_out": study.data == "digits", "bias": True, "threshold": study.threshold, "times": self.times}
        found = metrics_over_time(features, outputs, self.data[1], samples=self.samples, **options)
        return {name: values[:, : study.modes] if values.ndim > 1 else values for name, values in found.items()}

    @functools.cached_property
    def _features(self) -> np.ndarray:
        return np.asarray(self._network.features(self.data[0]))

    @functools.cached_property
    def _network(self) -> Any:
        width, seed = self.study.width, self.study.seed
        if self.study.data == "digits":
            return Convolutional((8, 8), 10, width=width, seed=seed)
        network = MLP((1, width, width, width, 1), seed=seed)
        # Without biases, the network would be linear on each side of zero.
        return with_random_biases(network, np.random.default_rng([seed, 1]))

    @functools.cached_property
    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets of the training samples, followed by an equal number of held-out samples."""
        draw = np.random.default_rng([self.study.seed, 2])
        if self.study.data == "digits":
            return balanced_digits(self.study.samples // 10, draw)
        return step_on_a_line(self.study.samples, draw)

    @property
    def samples(self) -> int:
        """Number of training samples."""
        return len(self.data[0]) // 2

    @functools.cached_property
    def _steps(self) -> np.ndarray:
        """Recorded steps, denser early in training."""
        return np.unique((self.study.steps * np.linspace(0, 1, self.study.times) ** 2).round().astype(int))

    @property
    def times(self) -> np.ndarray:
        """Recorded times, the same for both networks."""
        return self.study.learning_rate * self._steps


def _along_axes(curves: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: (("time", "mode")[: values.ndim], values) for name, values in curves.items()}
