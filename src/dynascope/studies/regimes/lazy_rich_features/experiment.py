"""Training and prediction of networks on progressively smaller targets, their lazy limits and scalar networks."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from dynascope.comparison.effect import report_effects
from dynascope.networks import MLP
from dynascope.probes.features import kappa_cka
from dynascope.studies.regimes.lazy_rich_features.claims import DISTANCE, LAST_LAYER, SMALLNESS
from dynascope.studies.regimes.lazy_rich_features.fastest_rate import fastest_rate
from dynascope.studies.regimes.lazy_rich_features.linear_descent import descended_outputs
from dynascope.studies.regimes.lazy_rich_features.richness import richer_settings
from dynascope.studies.regimes.lazy_rich_features.training import (
    Trained,
    distance,
    errors,
    expand,
    final_metrics,
    measures,
    train,
)
from dynascope.studies.regimes.scalar_training import final_growth
from dynascope.tasks.data.labelled_images import LabelledImages, labelled_images
from dynascope.theory.scalar_networks.scalar import Setting, scalar_limit

if TYPE_CHECKING:
    from dynascope.studies.regimes.lazy_rich_features.study import LazyRichFeatures

__all__ = ["STEP", "Experiment"]

STEP = 0.25  # step size of gradient descent, in units of the fastest time constant
_LINEARISED, _LAST_LAYER = "linearised", "last layer only"
_LARGEST_SECOND_ORDER = 0.02  # largest second order, relative to the first order, for which the tolerances hold


class Experiment:
    """Training and prediction of the networks of one study.

    Attributes:
        study: The study, whose fields are the settings.
        scalars: Scalar networks by name.
    """

    def __init__(self, study: LazyRichFeatures):
        self.study = study
        self.scalars = richer_settings(study.scalar_neurons, study.scalar_target, study.factor)

    @functools.cached_property
    def data(self) -> LabelledImages:
        """Labelled images, with enough samples and neurons for their classes."""
        study = self.study
        data = labelled_images(study.data, study.samples, study.test_samples, study.seed)
        problem = f"samples is {study.samples}, but there are {data.classes} classes"
        remedy = f"choose more than {data.classes} samples"
        study.require(study.samples > data.classes, "samples", remedy, problem=problem)
        # With fewer neurons, some output dimensions would be filled only by higher orders of the expansion.
        enough, remedy = 2 * study.width + 1 >= data.classes, f"choose {data.classes // 2} or more neurons"
        study.require(enough, "width", remedy, problem=f"width is {study.width}, which is too small for the classes")
        return data

    @functools.cached_property
    def labels(self) -> np.ndarray:
        """One-hot labels of the training images, followed by those of the test images."""
        return np.eye(self.data.classes)[np.concatenate([self.data.labels, self.data.test_labels])]

    @functools.cached_property
    def split(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Training images, their targets, and the test images."""
        images = (self.data.inputs, self.data.test_inputs)
        inputs, others = (each.reshape(len(each), -1).astype(np.float64) for each in images)
        return inputs, self.labels[: self.study.samples], others

    @functools.cached_property
    def networks(self) -> list[MLP]:
        """Initial networks, one for each seed."""
        study = self.study
        widths = (self.split[0].shape[1], *[study.width] * study.hidden_layers, self.data.classes)
        return [MLP(widths, activation=study.activation, seed=study.seed + each) for each in range(study.seeds)]

    @functools.cached_property
    def initial_features(self) -> np.ndarray:
        """Initial features of all images, shape (seeds, m, p)."""
        points = np.concatenate([self.split[0], self.split[2]])
        with jax.enable_x64(True):
            return np.stack([np.asarray(network.features(points)) for network in self.networks])

    @functools.cached_property
    def learning_rate(self) -> float:
        """A fraction of the fastest time constant of the first network's linearisation."""
        return STEP / fastest_rate(self.networks[0], self.split[0])

    @functools.cached_property
    def steps(self) -> np.ndarray:
        """Recorded steps, log-spaced."""
        last = round(self.study.duration / STEP)
        return np.unique(np.append(0, np.geomspace(1, last, self.study.times).round().astype(int)))

    def trained(self) -> dict[str, Any]:
        """Train the networks at every α, their linearisations, their last layers alone, and the scalar networks."""
        study = self.study
        statistics = measures(self.split[0], self.split[2])
        runs = {_named(alpha): self.run("all layers", alpha, statistics) for alpha in (*study.rich, *study.lazy)}
        runs |= {kind: self.run(kind, 1.0, statistics) for kind in (_LINEARISED, _LAST_LAYER)}
        linear, last = (runs[kind].outputs for kind in (_LINEARISED, _LAST_LAYER))
        limits = {"linearised": linear, "last_layer": last}
        measured = {
            name: final_metrics(run, limits, self.initial_features, self.labels, study.samples)
            for name, run in runs.items()
        }
        lazy = {alpha: runs[_named(alpha)] for alpha in study.lazy}
        return {
            **self.compared(
                np.stack([run.outputs for run in lazy.values()], axis=1),
                np.stack([alpha * distance(run.outputs, linear, study.samples) for alpha, run in lazy.items()], axis=1),
                np.stack([alpha * run.movement for alpha, run in lazy.items()], axis=1),
                (linear, last),
                np.transpose([measured[_named(alpha)]["kappa_cka"] for alpha in study.lazy]),
            ),
            "final_log_growth": ("dial", final_growth(self.scalars.values())),
            **{
                name: (("run", "seed"), np.array([each[name] for each in measured.values()]))
                for name in measured[_LINEARISED]
            },
            **self.reported(measured),
            "run": ("run", list(runs)),
        }

    def exact(self) -> dict[str, Any]:
        """Evaluate the expansion at every lazy α, and the theory of last-layer training and scalar networks."""
        study = self.study
        inputs, targets, others = self.split
        found = expand(self.networks, inputs, targets, others, self.steps, learning_rate=self.learning_rate)
        # The unknown third order is estimated from the ratio of the second to the first order.
        first, second = (np.linalg.norm(each[:, 1:], axis=(-2, -1)) for each in (found.first, found.second))
        least = float(np.max(second / first)) / _LARGEST_SECOND_ORDER
        problem = f"at the smallest lazy factor, {study.lazy[0]:g}, the second order of the expansion is not small"
        study.require(study.lazy[0] >= least, "lazy", f"choose factors of {least:.0f} or more", problem=problem)
        outputs = np.stack([found.first + found.second / alpha for alpha in study.lazy], axis=1)
        features = np.stack([found.start + found.change / alpha for alpha in study.lazy], axis=1)
        kappa = [
            [float(kappa_cka(h, f[-1, : study.samples])) for h, f in zip(*each, strict=True)]
            for each in zip(features, outputs, strict=True)
        ]
        last = [descended_outputs(h, targets, self.steps, self.learning_rate) for h in self.initial_features]
        same = np.ones((1, len(study.lazy), 1))
        correction, movement = (
            each[:, None] * same for each in (distance(found.second, 0, study.samples), found.movement)
        )
        scalars = Setting(*map(np.stack, zip(*self.scalars.values(), strict=True)))
        return {
            **self.compared(outputs, correction, movement, (found.first, np.stack(last)), kappa),
            "final_log_growth": ("dial", scalar_limit(scalars).log_growth),
        }

    def run(self, kind: str, divisor: float, statistics: Mapping[str, Any]) -> Trained:
        """Train all networks on targets divided by a number."""
        inputs, targets, _ = self.split
        options = {"divisor": divisor, "learning_rate": self.learning_rate}
        return train(self.networks, kind, inputs, targets, self.steps, statistics, **options)

    def compared(
        self, outputs: np.ndarray, correction: np.ndarray, movement: np.ndarray, limits: Any, kappa: Any
    ) -> dict[str, Any]:
        """The compared quantities, from outputs of shape (seeds, lazy, times, m, c) and the outputs of both limits."""
        loss, error = errors(outputs, self.labels, self.study.samples)
        linearised, last = (errors(each, self.labels, self.study.samples)[1] for each in limits)
        return {
            "loss": loss,
            "test_error": error,
            "correction": correction,
            "feature_movement": movement,
            "linearised_test_error": (("seed", "time"), linearised),
            "last_layer_test_error": (("seed", "time"), last),
            "lazy_kappa_cka": (("seed", "scaling_parameter"), kappa),
        }

    def reported(self, measured: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Outcomes of the hypotheses about features."""
        scaled = [measured[_named(alpha)] for alpha in (*self.study.rich, *self.study.lazy)]
        levels = {claim: [each[claim.metric] for each in scaled] for claim in SMALLNESS}
        levels[LAST_LAYER] = [each["kappa_cka"] for each in (scaled[-1], measured[_LAST_LAYER])]
        levels[DISTANCE] = [scaled[-1][f"distance_to_{which}"] for which in ("linearised", "last_layer")]
        effects = [claim.compare(each) for claim, each in levels.items()]
        return {**report_effects(list(levels), effects), "hypothesis": ("hypothesis", [each.name for each in levels])}


def _named(alpha: float) -> str:
    return f"target / {alpha:.9g}"
