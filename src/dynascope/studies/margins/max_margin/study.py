"""Classifiers whose parameters grow at several rates keep only the fastest small, and their margin may suffer."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import xarray as xr

from dynascope.results import Comparison, name_all
from dynascope.studies import Reference, Study, Values, curve_tolerance
from dynascope.studies.fields import count, numbers, positive, seed
from dynascope.studies.margins.max_margin.classifiers import CLASSIFIERS, FACTORS, follow_classifier
from dynascope.studies.margins.max_margin.networks import CollapsePath, follow_features, inputs_alike
from dynascope.studies.margins.max_margin.page import FIGURES, MEANING
from dynascope.studies.margins.max_margin.separable_data import SeparableData, separable_data
from dynascope.theory import margins, papers

_EXAMPLE = np.array([[1.0, 0.2], [10.0, -1.0]])  # y x of two samples
_STARTS = {
    "linear": {"a": [0.1, 0.3]},
    "products": {"u": [0.5, 0.6], "v": [0.4, 0.5]},
    "mixed": {"a": [0.1], "u": 0.6, "v": 0.5},
}
_FACTOR = 0.5  # start of both factors, where one sample is learned that they separate
_FIRST, _LAST = 10.0, 1e5  # ν between which classifiers are recorded; that of all starts is below
_FARTHEST = 1e6  # ν to which random data are followed, some of which near their limit as log(ν)/ν
_RANDOM_KINDS = ("linear", "mixed")  # of which errors fall as 1/ν, whatever the data; of products more slowly
_CLOSE = 1e-4
_OWN = 0.1 * _CLOSE  # that theory's own error may take on random data
_LIMIT = (
    _CLOSE,
    "what the limit leaves out falls as 1/ν or nearly so, and takes less than this at ν = 1e5, and at 1e6 of random "
    "data",
)
_EXACT = (1e-5, "the closed form is exact, and the solver keeps each step within 1e-8")
_KEPT = (1e-5, "no margin falls, and the solver keeps each step within 1e-8")
_DISTANCE = ("distance of the nearest sample from the boundary", "1")


class MaxMargin(Study):
    """Where gradient flow ends that is followed to a loss of exp(−ν), with ν up to 100,000.

    Three classifiers f = Σ β_j x_j see the same two samples: every β_j is one weight (linear), a product of two
    (products), or the first is one weight and the second a product (mixed). The first two are homogeneous, all their
    parameters grow at one rate and all are kept small: they end in the largest ℓ2 and ℓ1 margin. In the third the
    single weight grows faster, and it alone is kept small. Judged are β/ν by the solution of the asymmetric problem
    (`weights`), by how much inputs may move (`end_euclidean_margin`), and the constant of the loss over time t,
    L t (log t)^(2 − 2λ) → 2λ²P (`rate_constant`); on random data β/ν of linear and mixed classifiers
    (`random_weights`), and of a sample that a product alone separates the share of the weight that is not needed, as
    solved (`block_share`).

    Judged too is a linear layer whose features are normalised and read out: it has the rate zero, so that features are
    free to move and collapse to a simplex, with the readout of the least norm (`feature_cosines`,
    `between_class_share`, `classifier_cost`). Without normalisation, which is shown, they need not.

    Random data are followed to ν = 1,000,000, and drawn until theory speaks of them there: the solution is unique and
    needs the single weights, samples that are not at the margin are beyond by `gap`, and the error that theory knows of
    itself (`support_offset`, `support_drift`) is below a tenth of what is allowed. Checked is that the normalised
    margin never falls (`margin_kept`).
    """

    levels: int = count(30, "Number of margins at which training is recorded.", least=3)
    inputs: list[int] = numbers([2, 3, 4, 5], "Dimensions of the random data.", whole=True, least=2, most=6)
    draws: int = count(3, "Number of random data sets of each dimension and classifier.")
    samples: int = count(20, "Number of samples in each.", least=10, most=50)
    gap: float = positive(0.05, "By how much other samples are beyond the margin, over it.", most=0.1)
    classes: int = count(4, "Number of classes of the networks.", least=3, most=5)
    class_samples: int = count(2, "Samples of each class.", least=2, most=3)
    features: int = count(10, "Number of features, more than classes.", least=5, most=20)
    likeness: float = positive(0.8, "How much of the next class is in all but the first sample of one.", most=0.9)
    starts: int = count(3, "Number of random starts of the networks.")
    seed: int = seed("Seed of the data and of the starts.")

    reference = Reference.of(
        papers.QUASI_HOMOGENEOUS,
        "Gradient flow of a quasi-homogeneous classifier keeps only the parameters of the largest rate small, which "
        "may cost robustness, discards them where they are not needed, and collapses normalised features.",
    )
    theory = "asymmetric maximum margin"
    task = "separable samples"
    told = (
        "Two samples y x = (1, 0.2) and (10, −1), one sample (1, 1), and {samples} Gaussian ones in {inputs} "
        "dimensions.",
        "Networks: {class_samples} samples of each of {classes} classes, with independent inputs, {likeness:g} of the "
        "next class in them.",
    )
    trains = "linear, products, mixed, and normalised features"
    flow = (
        "gradient flow of the exponential loss, followed by the margin up to log(1/L) = 100000, of random data 1000000"
    )
    axes = ("architecture",)
    along = ("architecture", "run", "parameter_block", "start")
    labelled = {
        "architecture": tuple(CLASSIFIERS),
        "margin_level": "_levels",
        "run": "_runs",
        "parameter_block": ("single weight", "product"),
    }
    title = "Which margin is the largest?"
    question = "Of all solutions that separate the data, which does training end in, and how robust is it?"
    meaning = MEANING
    figures = FIGURES
    names = {
        "weights": ("weights β over ν at the end", "1"),
        "end_euclidean_margin": ("distance from the boundary at the end", "1"),
        "euclidean_margin": _DISTANCE,
        "direction_distance": ("relative distance of β/ν from its limit", "1"),
        "rate_constant": ("constant of the loss over time, L t (log t)^(2 − 2λ)", "1"),
        "random_weights": ("weights β over ν on random data", "1"),
        "random_distance": ("relative distance of β/ν from its limit on random data", "1"),
        "random_own_error": ("error that theory knows of itself on random data", "1"),
        "block_share": ("share of the margin", "1"),
        "feature_cosines": ("cosines between the normalised class means", "1"),
        "between_class_share": ("share of the variance of normalised features between classes", "1"),
        "classifier_cost": ("½‖W‖² of the readout at a margin of one", "1"),
        "normalised_nc1": ("spread within classes over that between (NC1), normalised", "1"),
        "unnormalised_nc1": ("spread within classes over that between (NC1), not normalised", "1"),
        "margin_kept": ("least normalised margin over the largest before", "1"),
        "seed": ("data set", "1"),
        "weight": ("weight β", "1"),
        "margin_level": ("margin log(1/L)", "1"),
        "parameter_block": ("block of parameters that grow at one rate", "1"),
    }
    minutes = 0.5
    tolerance = curve_tolerance(
        **dict.fromkeys(("weights", "end_euclidean_margin", "rate_constant", "random_weights"), _LIMIT),
        **dict.fromkeys(("feature_cosines", "between_class_share", "classifier_cost"), _LIMIT),
        block_share=_EXACT,
        margin_kept=_KEPT,
    )
    checks = ("margin_kept", "margin_kept_maximum")
    tiny = {"levels": 6, "inputs": [2, 3], "draws": 1, "classes": 3, "features": 5, "starts": 1}

    def check(self) -> None:
        """A simplex has room."""
        self.require(self.features > self.classes, "features", "choose more than classes", beside="classes")

    def trained(self) -> Values:
        """Follow the classifiers, on the example and on random data, and the networks."""
        return {**self._example(), **self._random(), **self._discarded(), **self._collapsed()}

    def exact(self) -> Values:
        """The solutions of the problems, and what normalised features collapse to."""
        problems, simplex = self._problems, margins.simplex_margin(self.classes)
        share = margins.discarded_share(self._levels, factor=_FACTOR)
        return {
            "weights": (("architecture", "feature"), [each.weights for each in problems]),
            "end_euclidean_margin": [each.euclidean_margin for each in problems],
            "rate_constant": [2 * each.rate**2 * each.value for each in problems],
            "margin_kept": np.ones(len(problems)),
            "random_weights": (("run", "seed", "weight"), self._of_data("weights")),
            "random_own_error": (("run", "seed"), self._of_data("own_error")),
            "block_share": (("parameter_block", "margin_level"), [share, 1 - share]),
            "feature_cosines": (("start", "class", "target"), np.tile(simplex.gram, (self.starts, 1, 1))),
            "between_class_share": ("start", np.ones(self.starts)),
            "classifier_cost": ("start", np.full(self.starts, simplex.value)),
        }

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """With the ends of the margins as lines, which are drawn and not judged again."""
        tree = super().compare(observed, predicted)
        line = predicted["end_euclidean_margin"].expand_dims(margin_level=observed["margin_level"]).drop_attrs()
        return dataclasses.replace(
            tree, predicted=name_all(predicted.assign(euclidean_margin=line), {"euclidean_margin": _DISTANCE})
        )

    def _example(self) -> dict[str, Any]:
        """The three classifiers on two samples."""
        paths = [follow_classifier(name, _STARTS[name], _EXAMPLE, self._levels) for name in CLASSIFIERS]
        both, problems = ("architecture", "margin_level"), self._problems
        distances = [_distance(path.scaled, of.weights) for path, of in zip(paths, problems, strict=True)]
        return {
            "weights": (("architecture", "feature"), [each.scaled[-1] for each in paths]),
            "end_euclidean_margin": [each.euclidean_margin[-1] for each in paths],
            "euclidean_margin": (both, [each.euclidean_margin for each in paths]),
            "direction_distance": (both, distances),
            "rate_constant": [path.rate_constant(of.rate) for path, of in zip(paths, problems, strict=True)],
            "margin_kept": [each.margin_kept() for each in paths],
            "loss": ("margin_level", np.exp(-self._levels)),
        }

    def _random(self) -> dict[str, Any]:
        """Linear and mixed classifiers on all random data, to the last margin."""
        draw, most = np.random.default_rng([self.seed, 1]), max(self.inputs)
        starts = {
            "linear": {"a": draw.normal(size=most)},
            "mixed": {"a": draw.normal(size=most - 1), "u": 0.6, "v": 0.5},
        }
        kinds = [name for name in _RANDOM_KINDS for _ in self.inputs]
        scaled = [
            [follow_classifier(name, starts[name], each.z, np.array([_FARTHEST])).scaled[-1] for each in row]
            for name, row in zip(kinds, self._data, strict=True)
        ]
        return {
            "random_weights": (("run", "seed", "weight"), scaled),
            "random_distance": (("run", "seed"), _distance(np.array(scaled), self._of_data("weights"))),
        }

    def _discarded(self) -> dict[str, Any]:
        """The mixed classifier on one sample, by the share of each block in its margin."""
        found = follow_classifier("mixed", {"a": [0.0], "u": _FACTOR, "v": _FACTOR}, np.ones((1, 2)), self._levels)
        return {"block_share": (("parameter_block", "margin_level"), (found.weights / found.path.margins).T)}

    def _collapsed(self) -> dict[str, Any]:
        """Both networks from all starts: how far features of a class have become one point, and what the end is."""
        normalised, free = self._networks(normalised=True), self._networks(normalised=False)
        return {
            "normalised_nc1": (("start", "margin_level"), [each.nc1 for each in normalised]),
            "unnormalised_nc1": (("start", "margin_level"), [each.nc1 for each in free]),
            "between_class_share": ("start", [each.between_class_share for each in normalised]),
            "classifier_cost": ("start", [each.classifier_cost for each in normalised]),
            "feature_cosines": (("start", "class", "target"), [each.cosines for each in normalised]),
        }

    def _networks(self, *, normalised: bool) -> list[CollapsePath]:
        labels = np.repeat(np.arange(self.classes), self.class_samples)
        x = inputs_alike(np.random.default_rng([self.seed, 2]), self.classes, self.class_samples, self.likeness)
        options: Any = {"levels": self._levels, "normalised": normalised}
        seeds = [[self.seed, 3, start] for start in range(self.starts)]
        return [follow_features(x, labels, self.features, **options, seed=each) for each in seeds]

    def _of_data(self, name: str) -> np.ndarray:
        return np.array([[getattr(each, name) for each in row] for row in self._data])

    @functools.cached_property
    def _problems(self) -> list[margins.MaxMargin]:
        """What theory says of the example."""
        return [margins.max_margin(_EXAMPLE, FACTORS[name]) for name in CLASSIFIERS]

    @functools.cached_property
    def _data(self) -> list[list[SeparableData]]:
        """For each classifier and dimension the random data sets, all of one shape."""
        draw, most = np.random.default_rng([self.seed, 0]), max(self.inputs)
        factors = [np.append(np.ones(n - 1, int), FACTORS[name][-1]) for name in _RANDOM_KINDS for n in self.inputs]
        options: Any = {"gap": self.gap, "most": _OWN}
        return [
            [separable_data(draw, self.samples, each, _FARTHEST, **options).padded(most) for _ in range(self.draws)]
            for each in factors
        ]

    @property
    def _runs(self) -> list[str]:
        return [f"{name}, {inputs}" for name in _RANDOM_KINDS for inputs in self.inputs]

    @functools.cached_property
    def _levels(self) -> np.ndarray:
        return np.geomspace(_FIRST, _LAST, self.levels)


def _distance(weights: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """‖β/ν − β̂‖/‖β̂‖."""
    return np.linalg.norm(weights - limit, axis=-1) / np.linalg.norm(limit, axis=-1)
