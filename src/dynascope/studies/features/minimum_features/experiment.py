"""Training and measurement of the networks that the hypotheses compare."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynascope.probes.last_layer import CURVES, network_metrics
from dynascope.studies.features.minimum_features import claims
from dynascope.studies.features.minimum_features.training import (
    REGRESSIONS,
    ClassifierRun,
    Trained,
    train_on_labels,
    train_regression,
)
from dynascope.tasks.data.labelled_images import LabelledImages, labelled_images

if TYPE_CHECKING:
    from dynascope.studies import Values
    from dynascope.studies.features.minimum_features.study import MinimumFeatures

__all__ = ["Experiment"]


class Experiment:
    """Trains the default network, and one network for each level of the settings that the hypotheses vary.

    Args:
        study: The study that defines the data, the default training and the hypotheses.
    """

    def __init__(self, study: MinimumFeatures):
        self.study = study

    def trained(self) -> Values:
        """Train all networks and measure their features."""
        runs = [self.measured(each) for each in self._trained().values()]
        most = max(each["intensity"].shape[1] for each in runs)

        def mean(curves: np.ndarray) -> np.ndarray:  # over seeds, with NaN beyond the modes of the network
            return np.pad(curves.mean(axis=0), (0, most - curves.shape[1]), constant_values=np.nan)

        return {
            **{name: [each[name] for each in runs] for name in runs[0] if name not in CURVES},
            **{name: (("run", "mode"), [mean(each[name]) for each in runs]) for name in CURVES},
        }

    def exact(self) -> Values:
        """Identities of the features of every network."""
        return dict.fromkeys(("total_utilization", "dimension_bound"), np.ones((len(self.names), self.study.seeds)))

    def measured(self, trained: Sequence[Trained]) -> dict[str, np.ndarray]:
        """The metrics of the networks of a run, with seeds along the first axis."""
        found = []
        for layer, targets, accuracy in trained:
            softmax = self.study.loss == "cross_entropy" and bool(np.isfinite(accuracy))
            metrics = network_metrics(layer, targets, softmax=softmax, threshold=self.study.threshold)
            found.append({"accuracy": accuracy, **metrics})
        return {name: np.stack([each[name] for each in found]) for name in found[0]}

    @property
    def names(self) -> list[str]:
        """The runs required by the hypotheses, in the order of the page."""
        needed = claims.compared(self.study.hypotheses)
        return [name for name in (*self._classifiers, *REGRESSIONS) if name in needed]

    @functools.cached_property
    def images(self) -> LabelledImages:
        """Training and test images."""
        study = self.study
        data = labelled_images(study.data, study.samples, study.test_samples, study.seed)
        enough = f"choose at least {data.classes}, so that each class can have its own feature"
        study.require(study.width >= data.classes, "width", enough)
        enough = f"choose at least {8 * (data.classes + 1)}, so that an eighth of the samples outnumbers the classes"
        study.require(study.samples // 8 > data.classes, "samples", enough)
        return data

    def _trained(self) -> dict[str, list[Trained]]:
        study = self.study
        options: dict[str, Any] = {"epochs": study.epochs, "batch_size": study.batch_size}
        hidden = (2 * study.width, study.width)

        @functools.cache  # runs with different names can be identical
        def classifiers(run: ClassifierRun) -> list[Trained]:
            chosen = options | {"loss": study.loss, "augment": study.augment}
            return [train_on_labels(run, self.images, seed=seed, **chosen) for seed in range(study.seeds)]

        def regressions(kind: str) -> list[Trained]:
            chosen = options | {"learning_rate": study.learning_rate, "seeds": study.seeds}
            return train_regression(kind, self.images, hidden, **chosen)

        runs = self._classifiers
        return {name: classifiers(runs[name]) if name in runs else regressions(name) for name in self.names}

    @functools.cached_property
    def _classifiers(self) -> dict[str, ClassifierRun]:
        """All classifiers by name, including those that the hypotheses do not require."""
        study = self.study
        usual = {"samples": study.samples, "learning_rate": study.learning_rate, "weight_decay": study.weight_decay}

        def run(network: str = study.network, **changes: Any) -> ClassifierRun:
            width = study.width if network in ("mlp", "convolutional") else -(-study.width // 8)
            return ClassifierRun(network, width, **usual | changes)

        grey = self.images.inputs.shape[-1] == 1
        return {
            "default": run(),
            **{name: run(**changed) for name, changed in claims.changed_fields(usual).items()},
            **{name: run(name) for name in ("vgg", "vgg-normalised")},
            "fully connected": run("mlp"),
            "convolutional": run("convolutional" if grey and study.network == "mlp" else "residual"),
            **{f"random labels {each:g}": run(random_labels=each) for each in claims.RANDOM[1:]},
        }
