"""Training of every network at every relative scale and sample size, and its measurement."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from dynascope import tasks
from dynascope.errors import DivergenceWarning
from dynascope.flows import track
from dynascope.studies.regimes.random_hierarchy.measures import crossing, input_sensitivity, sensitivity
from dynascope.studies.regimes.random_hierarchy.networks import (
    TREE,
    StringNetwork,
    hidden_features,
    largest_eigenvalue,
    network,
    rescaled,
)
from dynascope.tasks import Labelled
from dynascope.training import Descent, descend

if TYPE_CHECKING:
    from dynascope.studies.regimes.random_hierarchy.study import RandomHierarchy

__all__ = ["Experiment"]

_RATE_STRINGS = 100  # strings on which the learning rate is determined
_CHECKED_STRINGS = 20_000  # on which the sensitivity of the inputs is measured
_FITTED = 0.05  # training error up to which the training strings count as fitted
_CELL, _CURVE = ("network", "relative_scale", "seed"), ("network", "relative_scale", "sample_size", "seed")


class Experiment:
    """The training runs of one study.

    Attributes:
        study: The study, whose fields are the settings.
    """

    def __init__(self, study: RandomHierarchy):
        self.study = study

    @functools.cached_property
    def networks(self) -> tuple[str, ...]:
        """Names of the networks."""
        return (TREE, *(f"{layers} hidden layer{'s' * (layers > 1)}" for layers in self.study.hidden_layers))

    @functools.cached_property
    def hierarchies(self) -> list[tasks.RandomHierarchy]:
        """One hierarchy per seed."""
        study = self.study
        names = ("classes", "multiplicity", "branching", "depth")
        sizes = {name: getattr(study, name) for name in names}
        return [
            tasks.RandomHierarchy(study.vocabulary, **sizes, seed=study.seed + number) for number in range(study.seeds)
        ]

    def trained(self) -> dict[str, Any]:
        """Train all networks, and measure their errors and the sensitivity of their features."""
        study = self.study
        cells = [(name, scale) for name in self.networks for scale in study.relative_scales]
        found = [self._cell(*each) for each in track(cells, "networks")]
        shape = len(self.networks), len(study.relative_scales)
        curves = {name: np.stack([each[name] for each in found]) for name in found[0] if "layers" not in name}
        curves = {name: each.reshape(*shape, *each.shape[1:]) for name, each in curves.items()}
        fitted, errors = curves["training_error"] <= _FITTED, curves["test_error"]
        # A large test error of a network that did not fit its strings does not show that it needs more strings.
        known = np.where(fitted | (errors <= study.threshold), errors, np.nan)
        complexity = self._over_sizes(known, study.threshold, axis=2)
        # A network that fits its strings but does not generalise needs more strings.
        smallest, largest = study.sample_sizes[0], study.sample_sizes[-1]
        bound = np.max(np.where(known > study.threshold, np.array(study.sample_sizes)[:, None], 0), axis=2)
        # A layer reads the tuples of the layer below, so the second layer can identify all synonyms of level 1.
        layer = min(2, study.depth) - 1
        layers = [np.stack([each[name] for each in found[: shape[1]]]) for name in ("layers", "initial_layers")]
        drops = self._over_sizes(layers[0][..., layer, 0] / layers[1][:, None, :, layer, 0], 0.5, axis=1)
        reached = np.isfinite(complexity)
        axes = {"sensitivity": (*_CURVE, "level"), "learning_rate": _CELL[:2]}
        return {
            **{name: (axes.get(name, _CURVE), values) for name, values in curves.items()},
            "mean_test_error": (_CURVE[:3], curves["test_error"].mean(axis=-1)),
            "tree_sensitivity": ((*_CURVE[1:], "layer", "level"), layers[0]),
            "initial_tree_sensitivity": ((*_CELL[1:], "layer", "level"), layers[1]),
            "mean_tree_sensitivity": ((*_CURVE[1:3], "layer", "level"), layers[0].mean(axis=2)),
            "sample_complexity": (_CELL, np.where(reached, complexity, np.maximum(bound, smallest))),
            "reached": (_CELL, reached),
            "bounded": (_CELL, bound > 0),
            "sensitivity_drop": (_CELL[1:], np.where(np.isfinite(drops), drops, largest)),
            "dropped": (_CELL[1:], np.isfinite(drops)),
            "input_sensitivity": (("seed", "level"), [self._input_sensitivity(each) for each in self.hierarchies]),
        }

    def exact(self) -> dict[str, Any]:
        """The sensitivity of the inputs, by recursion over the levels of each hierarchy."""
        return {"input_sensitivity": (("seed", "level"), [input_sensitivity(each) for each in self.hierarchies])}

    def _width(self, name: str) -> int:
        return self.study.channels if name == TREE else self.study.width

    def _over_sizes(self, values: np.ndarray, threshold: float, axis: int) -> np.ndarray:
        return np.apply_along_axis(lambda each: crossing(self.study.sample_sizes, each, threshold), axis, values)

    def _cell(self, name: str, scale: float) -> dict[str, np.ndarray]:
        """Train one network at one relative scale, with all sample sizes and seeds in one program."""
        study, seeds, sizes = self.study, range(self.study.seeds), self.study.sample_sizes
        starts = [rescaled(network(name, self.hierarchies[k], self._width(name), study.seed + k), scale) for k in seeds]
        tests = [self._data(k)[1] for k in seeds]
        largest = [largest_eigenvalue(starts[k], tests[k].inputs[:_RATE_STRINGS]) for k in seeds]
        rate = study.learning_rate / float(np.mean(largest))
        repeated = [self._repeated(self._data(k)[0], size) for size in sizes for k in seeds]
        method = Descent(
            learning_rate=rate,
            steps=study.steps,
            loss="cross_entropy",
            batches=study.batch_size,
            save=[study.steps],
            test=tests * len(sizes),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DivergenceWarning)  # the curves of networks that diverge end with NaN
            record, ends = descend(repeated, starts * len(sizes), method, seed=study.seed, return_networks=True)
        shape = len(sizes), len(seeds)
        ended = {key: record[key].to_numpy()[..., -1].reshape(shape) for key in ("loss", "accuracy", "test_accuracy")}
        members = [jax.tree.map(lambda leaf, k=k: np.asarray(leaf)[k], ends) for k in range(len(repeated))]
        after = [self._sensitivities(each, k % study.seeds) for k, each in enumerate(members)]
        before = [self._sensitivities(each, k) for k, each in enumerate(starts)]
        return {
            "loss": ended["loss"].astype(float),
            "training_error": 1 - ended["accuracy"].astype(float),
            "test_error": 1 - ended["test_accuracy"].astype(float),
            "sensitivity": np.reshape([each[-1] for each in after], (*shape, study.depth)),
            "layers": np.reshape(after, (*shape, -1, study.depth)),
            "initial_layers": np.array(before),
            "learning_rate": np.array(rate),
        }

    @functools.cache  # noqa: B019 -- an experiment lives as long as its study
    def _data(self, seed: int) -> tuple[Labelled, Labelled]:
        """The largest training set and the test set of a seed, as strings of symbols."""
        study = self.study
        parts = self.hierarchies[seed].split(study.sample_sizes[-1], study.test_samples, seed=study.seed + seed)
        train, test = (Labelled(each.inputs.argmax(axis=-1), each.labels, each.class_names) for each in parts)
        return train, test

    def _repeated(self, data: Labelled, size: int) -> Labelled:
        """The first strings, repeated to the largest size, so that one program trains with all sample sizes."""
        rows = np.arange(data.samples) % size
        return Labelled(data.inputs[rows], data.labels[rows], data.class_names)

    @functools.cache  # noqa: B019 -- an experiment lives as long as its study
    def _exchanged(self, seed: int) -> list[np.ndarray]:
        """The test strings with exchanged synonyms of each level."""
        hierarchy, strings = self.hierarchies[seed], self._data(seed)[1].inputs
        levels = range(1, self.study.depth + 1)
        return [hierarchy.exchange_synonyms(strings, level, seed=self.study.seed + level) for level in levels]

    def _sensitivities(self, trained: StringNetwork, seed: int) -> np.ndarray:
        """The sensitivity of each hidden layer to synonyms of each level; one for constant features."""
        before = hidden_features(trained, self._data(seed)[1].inputs)
        after = [hidden_features(trained, strings) for strings in self._exchanged(seed)]
        found = [[sensitivity(each, level[k]) for level in after] for k, each in enumerate(before)]
        return np.nan_to_num(found, nan=1.0)

    def _input_sensitivity(self, hierarchy: tasks.RandomHierarchy) -> list[float]:
        """The sensitivity of one-hot strings, measured on many strings."""
        draw = np.random.default_rng([self.study.seed, hierarchy.seed])
        strings = hierarchy.strings(draw.integers(hierarchy.number_of_strings, size=_CHECKED_STRINGS))
        inputs = hierarchy.encode(strings).reshape(len(strings), -1)
        levels = [hierarchy.exchange_synonyms(strings, level, seed=level) for level in range(1, self.study.depth + 1)]
        return [sensitivity(inputs, hierarchy.encode(each).reshape(inputs.shape)) for each in levels]
