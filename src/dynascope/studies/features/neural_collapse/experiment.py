"""Unconstrained features with their closed-form solution, and networks trained on digits."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from dynascope.comparison import report_claims
from dynascope.studies.features.neural_collapse.claims import collapse_claims
from dynascope.studies.features.neural_collapse.free_features import train_free_features
from dynascope.studies.features.neural_collapse.networks import CollapsingNetworks
from dynascope.theory.features.unconstrained import ClassModes, class_modes, collapse_end, collapse_trajectory

if TYPE_CHECKING:
    from dynascope.studies import Values
    from dynascope.studies.features.neural_collapse.study import NeuralCollapse

__all__ = ["Experiment"]


class Experiment:
    """Trains unconstrained features from an aligned and from random initialisations, and networks on digits.

    Args:
        study: The study that defines the classes, the networks and the training.
    """

    def __init__(self, study: NeuralCollapse):
        self.study = study

    def trained(self) -> Values:
        """Train the unconstrained features by gradient flow and the networks by Adam."""
        study, networks = self.study, self.study.part(CollapsingNetworks)
        sizes = self._sizes(study.initial_strength), self._sizes(study.random_scale**2)
        rates = {"first": study.feature_rate, "second": study.classifier_rate}
        options = {"starts": study.starts, "seed": study.seed, "learning_rate": rates}
        free = train_free_features(study.class_sizes, study.features, *sizes, self.times, **options)
        measured = networks.measure()
        claims: Values = {}
        if measured:
            nc1, accuracy = (measured[name][1] for name in ("network_nc1", "network_accuracy"))
            claims = report_claims(collapse_claims(study.networks, study.labels, nc1, accuracy))
        # Axis labels are returned with the values, because the study has a field named `labels`.
        return {
            **free,
            **measured,
            **claims,
            "architecture": ("architecture", study.networks),
            "run": ("run", study.labels),
            "seed": ("seed", networks.seeds),
            "step": ("step", networks.recorded),
        }

    def exact(self) -> Values:
        """The closed-form trajectory from the aligned initialisation, and the limit for small initialisations."""
        study, times, starts = self.study, self.times[:-1], (self.study.starts, 1, 1)
        rates: Any = {"feature_rate": study.feature_rate, "classifier_rate": study.classifier_rate}
        sizes = self._sizes(study.initial_strength)
        path = jax.device_get(collapse_trajectory(times, study.class_sizes, *sizes, **rates))
        end = collapse_end(study.class_sizes, **rates)
        return {
            "time": times,
            "loss": path.loss,
            "mode_strength": (("time", "mode"), path.singular_value),
            "class_mean_norm": (("time", "class"), path.class_mean_norm),
            "nc3": path.nc3,
            "end_class_mean_gram": (("start", "class", "target"), np.tile(end.class_mean_gram, starts)),
            "end_classifier_gram": (("start", "class", "target"), np.tile(end.classifier_gram, starts)),
            "end_between_class_share": ("start", np.ones(study.starts)),
        }

    @functools.cached_property
    def modes(self) -> ClassModes:
        """The modes of the one-hot targets, one for each class."""
        return class_modes(self.study.class_sizes)

    @functools.cached_property
    def times(self) -> np.ndarray:
        """Times until the weakest mode is learned from the aligned initialisation, and the end of the other runs."""
        study, strength, samples = self.study, self.modes.strength, sum(self.study.class_sizes)
        rate = (study.feature_rate * study.classifier_rate) ** 0.5
        pace = samples / (2 * rate * strength)
        aligned = np.max(pace * (np.log(strength / study.initial_strength) + 8))
        # No mode starts much below the scale over √n, and thirty time constants suffice for every mode to converge.
        random = np.max(pace) * (2 * np.log(samples / study.random_scale) + 30)
        return np.append(np.linspace(0.0, aligned, study.times), max(random, 1.01 * aligned))

    def _sizes(self, strength: float) -> tuple[float, float]:
        """Sizes of features and classifier in balanced layers with a given product; their ratio is (η_H/η_W)^½."""
        tilt = (self.study.feature_rate / self.study.classifier_rate) ** 0.5
        return (strength * tilt) ** 0.5, (strength / tilt) ** 0.5
