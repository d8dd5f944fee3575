"""Gradient flow of classifiers and networks to large margins, and the max-margin problems that predict its limits."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from dynascope.flows import track
from dynascope.studies import Values
from dynascope.studies.margins.max_margin.classifiers import CLASSIFIERS, FACTORS, train_classifier
from dynascope.studies.margins.max_margin.networks import CollapsePath, similar_inputs, train_features
from dynascope.studies.margins.max_margin.separable_data import SeparableData, separable_data
from dynascope.theory import margins

if TYPE_CHECKING:
    from dynascope.studies.margins.max_margin.study import MaxMargin

__all__ = ["Experiment"]

_EXAMPLE = np.array([[1.0, 0.2], [10.0, -1.0]])  # y x of two samples
_STARTS = {
    "linear": {"a": [0.1, 0.3]},
    "products": {"u": [0.5, 0.6], "v": [0.4, 0.5]},
    "mixed": {"a": [0.1], "u": 0.6, "v": 0.5},
}
_FACTOR = 0.5  # initial value of both factors of the product that separates one sample
_FIRST, _LAST = 10.0, 1e5  # recorded range of ν; the initial ν of every classifier is smaller
_FARTHEST = 1e6  # final ν on random data, for which some errors fall only as log(ν)/ν
_RANDOM_KINDS = ("linear", "mixed")  # their errors fall as 1/ν on any data, and those of products more slowly
_PREDICTED_ERROR = 1e-5  # largest predicted error of the limit on random data, a tenth of the tolerance


class Experiment:
    """Gradient flow of classifiers on two samples, on random data and on one sample, and of networks.

    Attributes:
        study: The study, whose fields are the settings.
    """

    def __init__(self, study: MaxMargin):
        self.study = study

    def trained(self) -> Values:
        """Train all classifiers and networks."""
        values: dict[str, Any] = {}
        for part in track((self._example, self._random, self._discarded, self._collapsed), "parts"):
            values |= part()
        return values

    def exact(self) -> Values:
        """The solutions of the max-margin problems, and the simplex of collapsed features."""
        problems, simplex, starts = self.problems, margins.simplex_margin(self.study.classes), self.study.starts
        share = margins.discarded_share(self.levels, factor=_FACTOR)
        return {
            "weights": (("architecture", "feature"), [each.weights for each in problems]),
            "end_euclidean_margin": [each.euclidean_margin for each in problems],
            "rate_constant": [2 * each.rate**2 * each.value for each in problems],
            "margin_kept": np.ones(len(problems)),
            "random_weights": (("run", "seed", "weight"), self._of_data("weights")),
            "random_own_error": (("run", "seed"), self._of_data("predicted_error")),
            "block_share": (("parameter_block", "margin_level"), [share, 1 - share]),
            "feature_cosines": (("start", "class", "target"), np.tile(simplex.gram, (starts, 1, 1))),
            "between_class_share": ("start", np.ones(starts)),
            "classifier_cost": ("start", np.full(starts, simplex.value)),
        }

    @functools.cached_property
    def levels(self) -> np.ndarray:
        """Recorded values of ν = log(1/L)."""
        return np.geomspace(_FIRST, _LAST, self.study.levels)

    @property
    def runs(self) -> list[str]:
        """Name of each run on random data: its classifier and its dimension."""
        return [f"{name}, {inputs}" for name in _RANDOM_KINDS for inputs in self.study.inputs]

    @functools.cached_property
    def problems(self) -> list[margins.MaxMargin]:
        """The max-margin problem of each classifier on the two samples."""
        return [margins.max_margin(_EXAMPLE, FACTORS[name]) for name in CLASSIFIERS]

    @functools.cached_property
    def data(self) -> list[list[SeparableData]]:
        """Random data sets for each classifier and dimension, padded to the same shape."""
        study, draw = self.study, np.random.default_rng([self.study.seed, 0])
        factors = [np.append(np.ones(n - 1, int), FACTORS[name][-1]) for name in _RANDOM_KINDS for n in study.inputs]
        options: Any = {"gap": study.gap, "most": _PREDICTED_ERROR}
        return [
            [
                separable_data(draw, study.samples, each, _FARTHEST, **options).padded(max(study.inputs))
                for _ in range(study.draws)
            ]
            for each in factors
        ]

    def _of_data(self, name: str) -> np.ndarray:
        return np.array([[getattr(each, name) for each in row] for row in self.data])

    def _example(self) -> dict[str, Any]:
        """The three classifiers on two samples."""
        paths = [train_classifier(name, _STARTS[name], _EXAMPLE, self.levels) for name in CLASSIFIERS]
        both, problems = ("architecture", "margin_level"), self.problems
        distances = [_distance(path.scaled, of.weights) for path, of in zip(paths, problems, strict=True)]
        return {
            "weights": (("architecture", "feature"), [each.scaled[-1] for each in paths]),
            "end_euclidean_margin": [each.euclidean_margin[-1] for each in paths],
            "euclidean_margin": (both, [each.euclidean_margin for each in paths]),
            "direction_distance": (both, distances),
            "rate_constant": [path.rate_constant(of.rate) for path, of in zip(paths, problems, strict=True)],
            "margin_kept": [each.margin_kept() for each in paths],
            "loss": ("margin_level", np.exp(-self.levels)),
        }

    def _random(self) -> dict[str, Any]:
        """Linear and mixed classifiers on all random data, at the final ν."""
        draw, most = np.random.default_rng([self.study.seed, 1]), max(self.study.inputs)
        starts = {
            "linear": {"a": draw.normal(size=most)},
            "mixed": {"a": draw.normal(size=most - 1), "u": 0.6, "v": 0.5},
        }
        kinds = [name for name in _RANDOM_KINDS for _ in self.study.inputs]
        scaled = [
            [train_classifier(name, starts[name], each.z, np.array([_FARTHEST])).scaled[-1] for each in row]
            for name, row in track(list(zip(kinds, self.data, strict=True)), "classifiers")
        ]
        return {
            "random_weights": (("run", "seed", "weight"), scaled),
            "random_distance": (("run", "seed"), _distance(np.array(scaled), self._of_data("weights"))),
        }

    def _discarded(self) -> dict[str, Any]:
        """The share of each block in the margin of the mixed classifier on one sample."""
        found = train_classifier("mixed", {"a": [0.0], "u": _FACTOR, "v": _FACTOR}, np.ones((1, 2)), self.levels)
        return {"block_share": (("parameter_block", "margin_level"), (found.weights / found.path.margins).T)}

    def _collapsed(self) -> dict[str, Any]:
        """Collapse of the features of both networks, and the limit of the network with normalised features."""
        normalised, free = self._networks(normalised=True), self._networks(normalised=False)
        return {
            "normalised_nc1": (("start", "margin_level"), [each.nc1 for each in normalised]),
            "unnormalised_nc1": (("start", "margin_level"), [each.nc1 for each in free]),
            "between_class_share": ("start", [each.between_class_share for each in normalised]),
            "classifier_cost": ("start", [each.classifier_cost for each in normalised]),
            "feature_cosines": (("start", "class", "target"), [each.cosines for each in normalised]),
        }

    def _networks(self, *, normalised: bool) -> list[CollapsePath]:
        study = self.study
        labels = np.repeat(np.arange(study.classes), study.class_samples)
        x = similar_inputs(np.random.default_rng([study.seed, 2]), study.classes, study.class_samples, study.likeness)
        options: Any = {"levels": self.levels, "normalised": normalised}
        seeds = [[study.seed, 3, start] for start in range(study.starts)]
        return [train_features(x, labels, study.features, **options, seed=each) for each in track(seeds, "networks")]


def _distance(weights: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """‖β/ν − β̂‖/‖β̂‖."""
    return np.linalg.norm(weights - limit, axis=-1) / np.linalg.norm(limit, axis=-1)
