"""How strong, useful and used the features of a network are, trained fully and in its last layer alone."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, Literal

import jax
import numpy as np
import optax

from dynascope.comparison import Claim
from dynascope.networks import MLP, Convolutional
from dynascope.networks.mlp import with_random_biases
from dynascope.probes.features import eigenfeatures
from dynascope.probes.last_layer import metrics_over_time
from dynascope.studies import ClaimsStudy, Reference, Values, exact
from dynascope.studies.features.feature_metrics.page import FIGURES, MEANING
from dynascope.studies.features.feature_metrics.step import step_on_a_line
from dynascope.studies.features.linear_models import train_all_layers, train_last_layer
from dynascope.studies.features.relabelled_digits import balanced_digits
from dynascope.studies.fields import choice, count, number, positive, seed
from dynascope.theory.scalar_networks import linear_mode_strength
from dynascope.training.optimizers import decayed

_CURVES = ("test_loss", "accuracy", "kappa_cka", "effective_dimension_utilization")
_ALONE = ("loss", *_CURVES, "utilization", "cumulative_utilization")
_FULL = (
    *(*_CURVES, "effective_dimension", "effective_dimension_quality", "constant_overlap"),
    *("cumulative_utilization", "cumulative_quality", "normalised_intensity"),
)
_FITTED = 0.1  # loss over its start, below which full training has come to its end
_MOST_DIGITS = 870  # for training: as many others are held out, equally many of each class


class FeatureMetrics(ClaimsStudy):
    """A network is trained in two ways from one start: fully, and in its last layer alone.

    Alone, the last layer is a linear model on the features of the start. Its outputs are known at all times, and with
    them its losses, its accuracy, which features it uses and how far these are from a minimum (κ). That holds of every
    linear model, and is checked. Of full training the same is shown (`full_…`), and judged by κ at the end of both,
    from several starts (`end_kappa_cka`), unless its loss is then above a tenth of the first in one of them; curves
    are those of the first start.
    """

    data: Literal["digits", "heaviside"] = choice(
        "digits",
        '"digits" for images and a small convolutional network, or "heaviside" for a step on the line and four dense '
        "layers.",
    )
    samples: int = count(
        800,
        "Number of training samples; as many others are held out. Digits have equally many of each class, at most 870 "
        "in all.",
        least=20,
    )
    width: int = count(64, 'Number p of features, and for "heaviside" the width of all layers.')
    learning_rate: float = positive(0.5, "Of full training, by stochastic gradient descent.")
    weight_decay: float = number(1e-3, "Of full training, λ of the term λ‖θ‖²/2 in its loss.", least=0.0)
    steps: int = count(5000, "Number of its steps; the last layer alone is trained by gradient flow for as long.")
    batch_size: int = count(50, "Samples in each of these steps.")
    times: int = count(40, "Number of times at which both are recorded.", least=2)
    modes: int = count(12, "How many of the strongest modes are recorded one by one.")
    threshold: float = positive(0.1, "κ below which features are called minimal.")
    seeds: int = count(3, "Number of starts.", least=2)
    seed: int = seed("Seed of the weights, of the samples and of the batches of the first start; others follow it.")

    reference = Reference.of(
        "Y. Nam, C. Mingard, S. H. Lee, S. Hayou, A. Louis, Visualising Feature Learning in Deep Neural Networks by "
        "Diagonalizing the Forward Feature Map (arXiv 2410.04264)",
        "A network that trains all its layers comes down to minimum features, and to fewer than with its last layer "
        "alone.",
        also="; Nam, DPhil thesis (2024), chapter 2",
    )
    judged_claims = ("fewer features", "minimum features")
    title = "Features of full training and of the last layer alone"
    question = "Does a network that trains all its layers come down to the features that it needs?"
    meaning = MEANING
    figures = FIGURES
    names = {
        "accuracy": ("accuracy on held-out samples", "1"),
        "end_kappa_cka": ("distance to minimum features κ in the end", "1"),
        "full_accuracy": ("accuracy on held-out samples, trained with its features", "1"),
        "normalised_intensity": ("intensity of the feature over that of the first", "1"),
    }
    labelled = {"run": ("last layer", "full"), "seed": lambda study: study.seed + np.arange(study.seeds)}
    minutes = 0.8
    theory = "gradient flow of a linear model on fixed features"
    flow = "SGD of all layers, and gradient flow of the last layer alone"
    tolerance = exact(*_ALONE) | exact(
        "accuracy", error=0.01, reason="rounding may turn a sample that lies on the boundary of two classes"
    )
    checks = tuple(tolerance)
    tiny = {
        **{"data": "heaviside", "samples": 60, "width": 12, "steps": 100},
        **{"batch_size": 20, "times": 10, "seeds": 2},
    }

    def check(self) -> None:
        """As many digits as there are, and no fewer than in a batch."""
        self.require(self.data != "digits" or self.samples <= _MOST_DIGITS, "samples", f"choose 20 to {_MOST_DIGITS}")
        few = "choose no more than there are training samples"
        self.require(self.batch_size <= self.samples // 10 * 10, "batch_size", few, beside="samples")

    def trained(self) -> Values:
        """Train in both ways, and measure the features and outputs of all recorded times."""
        with jax.enable_x64(True):
            others = [dataclasses.replace(self, seed=self.seed + k, times=2) for k in range(1, self.seeds)]
            starts = [study._runs() for study in (self, *others)]
        runs = starts[0]
        alone, full = (_along_axes(each) for each in runs)
        kinds = ["minimum features" if each["minimum_features"][-1] else "extended features" for each in runs]
        return {
            **{name: alone[name] for name in _ALONE},
            **{f"full_{name}": full[name] for name in _FULL},
            "end_cumulative_utilization": (("run", "mode"), [each["cumulative_utilization"][-1] for each in runs]),
            "end_kappa_cka": (("seed", "run"), [[each["kappa_cka"][-1] for each in start] for start in starts]),
            "fitted": ("seed", [full["loss"][-1] <= _FITTED * full["loss"][0] for _, full in starts]),
            "regime": ("run", kinds),
        }

    def claimed(self, found: Mapping[str, Any]) -> list[Claim]:
        """What is claimed of κ in the end, where full training has come to its end; else nothing is known."""
        alone, full = np.transpose(found["end_kappa_cka"][1])
        lower, few = "All layers come to a lower κ than the last alone.", "All layers come to minimum features."
        claims = [
            Claim.of_runs("fewer features", lower, full - alone, most=0.0),
            Claim.of_runs("minimum features", few, full, most=self.threshold),
        ]
        fitted = np.asarray(found["fitted"][1])
        few = f"{fitted.sum()} of {fitted.size} runs brought the loss below {100 * _FITTED:.0f} % of its start"
        return [claim.if_known(bool(fitted.all()), few) for claim in claims]

    def exact(self) -> Values:
        """The modes of the first features, each of which learns its part of the target exponentially."""
        # The bias is a feature that is one everywhere.
        features, count = np.pad(self._start, ((0, 0), (0, 1)), constant_values=1.0), self._count
        modes = eigenfeatures(features[:count])
        values = features @ modes.directions
        outputs = self._start @ self._network.classifier + self._network.classifier_bias
        missing = values[:count].T @ (self._data[1] - outputs)[:count] / count
        rates = np.where(modes.intensity > 0, modes.intensity, 1.0)
        learned = np.asarray(linear_mode_strength(self._times[:, None, None], missing, rates[:, None]))
        curves = _along_axes(self._measured([self._start] * len(self._times), outputs + values @ learned))
        return {name: curves[name] for name in _ALONE}

    def about(self) -> Values:
        """The samples and the network."""
        pictures = self.data == "digits"
        task, network = ("digits", "convolutional") if pictures else ("a step on the line", "four dense layers")
        digits = "Handwritten digits of 8 × 8 pixels and one-hot targets, equally many of each class."
        step = "The targets are 0 for x < 0 and 1 for x > 0, on a grid over [−1, 1]; held-out inputs are random."
        samples = f"{self._count} samples for training and as many held out."
        overlaps = f"Overlaps are those on the {'held-out samples' if pictures else 'grid'}."
        told = [digits if pictures else step, samples, overlaps, "The bias of the last layer counts as a feature."]
        return {"task": task, "network": network, "scale": 1.0, "threshold": self.threshold, "description": told}

    def _runs(self) -> list[dict[str, np.ndarray]]:
        """Of the last layer as a network on the features of the start, and of all layers."""
        outputs = train_last_layer(self._network, self._start, self._data[1][: self._count], self._times)
        options = {"learning_rate": self.learning_rate, "batch_size": self.batch_size, "seed": self.seed}
        # An array is given to the compiled program and no part of it.
        options |= {"optimizer": decayed(optax.sgd, np.float64(self.weight_decay)), "recorded": self._steps}
        full = train_all_layers(self._network, *self._data, self._count, **options)
        return [self._measured(*each) for each in (([self._start] * len(self._times), outputs), full)]

    def _measured(self, features: Any, outputs: np.ndarray) -> dict[str, np.ndarray]:
        """All metrics at all times; overlaps on held-out digits, and for the step on the grid, which is all of it."""
        options = {"held_out": self.data == "digits", "bias": True, "threshold": self.threshold, "times": self._times}
        found = metrics_over_time(features, outputs, self._data[1], samples=self._count, **options)
        return {name: values[:, : self.modes] if values.ndim > 1 else values for name, values in found.items()}

    @functools.cached_property
    def _start(self) -> np.ndarray:
        return np.asarray(self._network.features(self._data[0]))

    @functools.cached_property
    def _network(self) -> Any:
        if self.data == "digits":
            return Convolutional((8, 8), 10, width=self.width, seed=self.seed)
        network = MLP((1, self.width, self.width, self.width, 1), seed=self.seed)
        # Without biases the network would be linear on either side of zero.
        return with_random_biases(network, np.random.default_rng([self.seed, 1]))

    @functools.cached_property
    def _data(self) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets: the training samples, then as many held-out ones."""
        draw = np.random.default_rng([self.seed, 2])
        drawn, number = (
            (balanced_digits, self.samples // 10) if self.data == "digits" else (step_on_a_line, self.samples)
        )
        return drawn(number, draw)

    @property
    def _count(self) -> int:  # of training
        return len(self._data[0]) // 2

    @functools.cached_property
    def _steps(self) -> np.ndarray:
        """Recorded steps, more often at first, when most happens."""
        return np.unique((self.steps * np.linspace(0, 1, self.times) ** 2).round().astype(int))

    @property
    def _times(self) -> np.ndarray:
        return self.learning_rate * self._steps


def _along_axes(curves: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: (("time", "mode")[: values.ndim], values) for name, values in curves.items()}
