"""Minimum features: which dials bring the features of a network down to the functions it needs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from dynascope.comparison.effect import report_runs
from dynascope.probes.last_layer import CURVES, SPAN, network_metrics
from dynascope.results import Chart
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance
from dynascope.studies.features.minimum_features import claims
from dynascope.studies.features.minimum_features.claims import HYPOTHESES, RANDOM
from dynascope.studies.features.minimum_features.experiment import (
    REGRESSIONS,
    ClassifierRun,
    Trained,
    train_on_labels,
    train_regression,
)
from dynascope.studies.features.minimum_features.page import FIGURES, MEANING
from dynascope.studies.fields import choice, choices, count, flag, number, positive, seed, text
from dynascope.tasks.data.labelled_images import LabelledImages, labelled_images

_CURVES_SHOWN = ("default", "samples × 0.125", "random labels 1", "last layer only")


class MinimumFeatures(ClaimsStudy):
    """Ten classes need ten features: measured is when a network has as few, and what moves it there.

    The hypotheses H1 to H9 say which way a dial moves the distance to minimum features κ_CKA (zero where the features
    span no more than the outputs), the sharpness of the spectrum, or the accuracy. The verdict is decided by what H1 to
    H5 say of κ_CKA: data, learning rate, weight decay, normalisation and architecture.

    Checked is what holds of every network: with the constant among the features, the outputs lie in their span, so that
    the utilizations sum to one (`total_utilization`); and no mode can carry more than one output dimension, so that the
    effective dimension of the utilization is at least that of the outputs (`dimension_bound`, the lesser of one and
    their ratio).

    By default an MLP on handwritten digits stands for the residual network on CIFAR-10 of the source, and a small
    convolutional network has more features than it, against H5, so that the verdict is "disagree". With `data` as
    the path of images in IDX, CIFAR or folder form and `network` as residual it is that experiment, for a GPU.
    """

    data: str = text("digits", '"digits", or the path of labelled images.')
    network: Literal["mlp", "residual"] = choice(
        "mlp", '"mlp" or "residual", the network whose data, learning rate, weight decay and labels are varied.'
    )
    loss: Literal["squared", "cross_entropy"] = choice("squared", '"squared" or "cross_entropy".')
    samples: int = count(1000, "Number of training images.", least=2)
    test_samples: int = count(10_000, "Largest number of test images.", least=2)
    width: int = count(
        64,
        "Features of the MLPs and convolutional networks; channels of the first stage of larger ones are an eighth of "
        "it.",
    )
    epochs: int = count(100, "Passes over the training images.")
    batch_size: int = count(50, "Images in a step.")
    learning_rate: float = positive(0.02, "Learning rate at the start.")
    weight_decay: float = number(1e-3, "Coefficient λ of ½ λ‖θ‖².", least=0.0)
    augment: bool = flag(False, "Whether larger convolutional networks see cropped and mirrored images.")
    threshold: float = positive(0.1, "ε: features with κ_CKA < ε are called minimal.")
    hypotheses: list[str] = choices(HYPOTHESES, "Which hypotheses to put to the test, of H1 to H9.", HYPOTHESES)
    seeds: int = count(4, "Number of initialisations of each network, from which runs are told from chance.", least=2)
    seed: int = seed("Seed of the data.")

    reference = Reference.of(
        "Y. Nam, Layerwise dynamics and inductive bias (DPhil thesis, chapters 2 and 7); Y. Nam, C. Mingard, S. H. "
        "Lee, S. Hayou, A. Louis, Visualising feature learning in deep neural networks by diagonalizing the forward "
        "feature map (arXiv 2410.04264)",
        "More data, a good learning rate, weight decay, batch normalisation and convolutions bring a network towards "
        "minimum features.",
    )
    theory = "spans of features and outputs"
    trains = "{network}"
    flow = "descent with momentum, of a rate that falls from {learning_rate:g}"
    axes = ("run", "seed")
    labelled = {"run": "_names", "dial": "_dials"}
    along = "run"
    checks = ("total_utilization", "total_utilization_maximum", "dimension_bound", "dimension_bound_maximum")
    minutes = 2.8
    question = "What makes a network come down to as few features as its task needs?"
    meaning = MEANING
    figures = FIGURES
    names = {
        "accuracy": ("test accuracy", "1"),
        "dial": ("what was changed", "1"),
        "kappa_cka_change": ("change of the distance to minimum features κ", "1"),
        "accuracy_change": ("change of the test accuracy", "1"),
        "dimension_bound": ("bound on the dimension", "1"),
        "quality_rank_correlation": ("rank correlation of quality and intensity", "1"),
        "utilization_rank_correlation": ("rank correlation of utilization and intensity", "1"),
        "minimum_features": ("whether the features are as few as can be", "1"),
        "flatness": ("flatness of the first intensities", "1"),
    }
    tolerance = curve_tolerance(
        total_utilization=(1e-6, SPAN), dimension_bound=(1e-6, "the bound is exact up to rounding of the projectors")
    )
    tiny = {
        **{"samples": 96, "width": 16, "epochs": 2, "test_samples": 100},
        **{"hypotheses": ["H3", "H9"], "seeds": 2},
    }

    def trained(self) -> Values:
        """Train all networks, and measure their features."""
        runs = [self._measured(each) for each in self._trained().values()]
        most = max(each["intensity"].shape[1] for each in runs)

        def mean(curves: np.ndarray) -> np.ndarray:  # over seeds; NaN beyond the modes that there are
            return np.pad(curves.mean(axis=0), (0, most - curves.shape[1]), constant_values=np.nan)

        return {
            **{name: [each[name] for each in runs] for name in runs[0] if name not in CURVES},
            **{name: (("run", "mode"), [mean(each[name]) for each in runs]) for name in CURVES},
        }

    def claimed(self, found: Mapping[str, Any]) -> Values:
        """What the hypotheses say of the runs, and how far each dial moves κ and the accuracy, with intervals."""
        metrics = [name for name in found if name not in CURVES]
        runs = {name: {metric: found[metric][k] for metric in metrics} for k, name in enumerate(self._names)}
        varied = self._dials
        moved = {name: claims.moved_by(varied, runs, name) for name in ("kappa_cka", "accuracy") if varied}
        return {
            **{
                f"{metric}_change{end}": ("dial", [getattr(each, part) for each in effects])
                for metric, effects in moved.items()
                for end, part in (("", "change"), ("_low", "low"), ("_high", "high"))
            },
            **report_runs(claims.put_claims(self.hypotheses, runs)),
        }

    @property
    def judged_claims(self) -> tuple[str, ...]:
        """What the chosen hypotheses say of κ."""
        return claims.deciding(self.hypotheses)

    def exact(self) -> Values:
        """What holds for the features of every network."""
        return dict.fromkeys(("total_utilization", "dimension_bound"), np.ones((len(self._names), self.seeds)))

    def charts(self) -> list[Chart]:
        """Those that there are for these hypotheses."""
        tested = tuple(each for each in self._dials if each not in claims.REGRESSED)
        dials, accuracy, networks, curves = self.figures
        return [
            *[dials] * bool(self._dials),
            *[dataclasses.replace(accuracy, members={"dial": tested})] * bool(tested),
            networks,
            dataclasses.replace(curves, members={"run": tuple(each for each in _CURVES_SHOWN if each in self._names)}),
        ]

    @property
    def _dials(self) -> list[str]:
        return claims.dials(self.hypotheses)

    @property
    def _names(self) -> list[str]:
        """The runs that the hypotheses need, in one order."""
        needed = claims.compared(self.hypotheses)
        return [name for name in (*self._runs, *REGRESSIONS) if name in needed]

    @functools.cached_property
    def _task(self) -> LabelledImages:
        data = labelled_images(self.data, self.samples, self.test_samples, self.seed)
        enough = f"choose at least {data.classes}, so that each of the classes can have its feature"
        self.require(self.width >= data.classes, "width", enough)
        enough = f"choose at least {8 * (data.classes + 1)}: an eighth is trained on too, more than there are classes"
        self.require(self.samples // 8 > data.classes, "samples", enough)
        return data

    @functools.cached_property
    def _runs(self) -> dict[str, ClassifierRun]:
        usual = {"samples": self.samples, "learning_rate": self.learning_rate, "weight_decay": self.weight_decay}

        def run(network: str = self.network, **changes: Any) -> ClassifierRun:
            width = self.width if network in ("mlp", "convolutional") else -(-self.width // 8)
            return ClassifierRun(network, width, **usual | changes)

        grey = self._task.inputs.shape[-1] == 1
        return {
            "default": run(),
            **{name: run(**turned) for name, turned in claims.dialled(usual).items()},
            **{name: run(name) for name in ("vgg", "vgg-normalised")},
            "fully connected": run("mlp"),
            "convolutional": run("convolutional" if grey and self.network == "mlp" else "residual"),
            **{f"random labels {each:g}": run(random_labels=each) for each in RANDOM[1:]},
        }

    def _trained(self) -> dict[str, list[Trained]]:
        options = {"epochs": self.epochs, "batch_size": self.batch_size, "loss": self.loss, "augment": self.augment}

        @functools.cache  # runs of different names may be the same
        def train(run: ClassifierRun) -> list[Trained]:
            return [train_on_labels(run, self._task, seed=seed, **options) for seed in range(self.seeds)]

        return {name: train(self._runs[name]) if name in self._runs else self._regression(name) for name in self._names}

    def _regression(self, name: str) -> list[Trained]:
        options = {"epochs": self.epochs, "batch_size": self.batch_size, "learning_rate": self.learning_rate}
        return train_regression(name, self._task, (2 * self.width, self.width), seeds=self.seeds, **options)

    def _measured(self, trained: list[Trained]) -> dict[str, np.ndarray]:
        """The metrics of the networks of a run, each with the seeds in front."""
        found = []
        for layer, targets, accuracy in trained:
            softmax = self.loss == "cross_entropy" and bool(np.isfinite(accuracy))
            metrics = network_metrics(layer, targets, softmax=softmax, threshold=self.threshold)
            found.append({"accuracy": accuracy, **metrics})
        return {name: np.stack([each[name] for each in found]) for name in found[0]}
