"""Minimum features: which dials bring the features of a network down to the functions it needs."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dynascope.studies.features.feature_claims import DECAYS, RANDOM, RATES, SIZES
from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import xarray as xr

    from dynascope.comparison.effect import Effect, Hypothesis
    from dynascope.studies.features.feature_runs import FeatureRun, LabelledImages, Trained

__all__ = ["MinimumFeatures"]

_DOWNSCALED = 100.0
_REGRESSIONS = ("scalar target", "rich", "downscaled target", "last layer only")
_NUMBERS = (
    *("kappa_cka", "minimum_features", "constant_overlap"),
    *("effective_dimension", "effective_dimension_quality", "effective_dimension_utilization"),
)
_CURVES = ("intensity", "cumulative_quality", "cumulative_utilization")


@dataclasses.dataclass(frozen=True)
class MinimumFeatures(Study):
    """Ten classes need ten features: measured is when a network has as few, and what moves it there.

    The hypotheses H1 to H9 say which way a factor moves the distance to minimum features κ_CKA (zero where the features
    span no more than the outputs), the sharpness of the spectrum, or the accuracy. Each is measured with a bootstrap
    interval over seeds, and the page reports which hold here. They are empirical, and no verdict depends on them.

    Judged is what theory says of every network: with the constant among the features, the outputs lie in their span,
    so that the utilizations sum to one (`total_utilization`); and no mode can carry more than one output dimension, so
    that the effective dimension of the utilization is at least that of the outputs (`dimension_bound`, the lesser of
    one and their ratio).

    By default an MLP on handwritten digits stands for the residual network on CIFAR-10 of the source. With `data` as
    the path of images in IDX, CIFAR or folder form and `network` as residual it is that experiment, for a GPU.

    Attributes:
        data: "digits", or the path of labelled images.
        network: "mlp" or "residual", the network whose data, learning rate, weight decay and labels are varied.
        loss: "squared" or "cross_entropy".
        samples: Number of training images.
        test_samples: Largest number of test images.
        width: Features of the MLPs and convolutional networks; channels of the first stage of larger ones are an eighth
            of it.
        epochs: Passes over the training images.
        batch_size: Images in a step.
        learning_rate: Learning rate at the start.
        weight_decay: Coefficient λ of ½ λ‖θ‖².
        augment: Whether larger convolutional networks see cropped and mirrored images.
        threshold: ε: features with κ_CKA < ε are called minimal.
        hypotheses: Which hypotheses to put to the test, of H1 to H9.
        seeds: Number of initialisations of each network.
        seed: Seed of the data.
    """

    data: str = "digits"
    network: Literal["mlp", "residual"] = "mlp"
    loss: Literal["squared", "cross_entropy"] = "squared"
    samples: int = 1000
    test_samples: int = 10_000
    width: int = 64
    epochs: int = 100
    batch_size: int = 50
    learning_rate: float = 0.02
    weight_decay: float = 1e-3
    augment: bool = False
    threshold: float = 0.1
    hypotheses: list[str] = dataclasses.field(default_factory=lambda: [f"H{k}" for k in range(1, 10)])
    seeds: int = 4
    seed: int = 0

    name: ClassVar[str] = "minimum-features"
    reference: ClassVar[Reference] = Reference(
        paper="Y. Nam, Layerwise dynamics and inductive bias (DPhil thesis, chapters 2 and 7); Y. Nam, C. Mingard, "
        "S. H. Lee, S. Hayou, A. Louis, Visualising feature learning in deep neural networks by diagonalizing the "
        "forward feature map",
        arxiv="2410.04264",
        claim="Data, learning rate, weight decay, normalisation and architecture move a network between minimum and "
        "extended features, whose utilization by the outputs always adds up to one.",
    )
    along: ClassVar = "run"
    minutes: ClassVar[float] = 3.0
    tolerance: ClassVar = curve_tolerance(
        total_utilization=(
            1e-6,
            "outputs are made of the features in float64, and modes of relative size 1e-12 are left out",
        ),
        dimension_bound=(1e-6, "the bound is exact up to rounding of the projectors"),
    )
    tiny: ClassVar = {
        **{"samples": 96, "width": 16, "epochs": 2, "test_samples": 100},
        **{"hypotheses": ["H3", "H9"], "seeds": 2},
    }

    def observe(self) -> xr.Dataset:
        """Train all networks, measure their features, and put the hypotheses to them."""
        import warnings

        import numpy as np

        from dynascope.comparison.effect import report_effects
        from dynascope.record import make_record

        with warnings.catch_warnings():
            # Few samples and random labels are what is studied here, and the page says so.
            warnings.filterwarnings("ignore", message=".*(balanced|modes beyond the samples)")
            measured = {name: [self._measured(each) for each in runs] for name, runs in self._trained().items()}
        claims, effects = self._effects(measured)
        names = [name for name, values in measured["default"][0].items() if np.ndim(values) == 0]
        most = max(len(each["intensity"]) for runs in measured.values() for each in runs)
        return make_record(
            {
                **{
                    name: (("run", "seed"), np.array([[each[name] for each in runs] for runs in measured.values()]))
                    for name in names
                },
                **{
                    name: (("run", "mode"), np.array([_mean_curve(name, runs, most) for runs in measured.values()]))
                    for name in _CURVES
                },
                **report_effects(claims, effects),
            },
            {
                "run": list(measured),
                "seed": np.arange(self.seeds),
                "mode": np.arange(1, most + 1),
                "hypothesis": [f"{claim.name} ({k})" for k, claim in enumerate(claims, start=1)],
            },
            attributes=self._about(),
        )

    def predict(self) -> xr.Dataset:
        """What holds for the features of every network."""
        import numpy as np

        from dynascope.record import make_record

        labels = {"run": self._names(), "seed": np.arange(self.seeds)}
        ones = np.ones((len(labels["run"]), self.seeds))
        return make_record(
            dict.fromkeys(("total_utilization", "dimension_bound"), (("run", "seed"), ones)),
            labels,
            attributes={"theory": "spans of features and outputs", "reference": self.reference.paper, **self._about()},
        )

    def _names(self) -> list[str]:
        """The runs that the hypotheses need, in one order."""
        levels = {level for _, levels in self._claims() for level in levels}
        if "best learning rate" in levels:
            levels |= {f"learning rate × {each:g}" for each in RATES[:-1]}
        return [name for name in (*self._runs(), *_REGRESSIONS) if name in levels | {"default"}]

    def _claims(self) -> list[tuple[Hypothesis, list[str]]]:
        from dynascope.arguments import require
        from dynascope.studies.features.feature_claims import feature_claims

        known = list(dict.fromkeys(claim.name for claim, _ in feature_claims()))
        require(
            len(self.hypotheses) > 0 and set(self.hypotheses) <= set(known),
            f"hypotheses is {self.hypotheses}",
            argument="hypotheses",
            value=self.hypotheses,
            remedy=f"choose some of {', '.join(known)}",
        )
        return [(claim, levels) for claim, levels in feature_claims() if claim.name in self.hypotheses]

    def _about(self) -> dict[str, Any]:
        data = self._data
        return {
            "task": data.name,
            "description": list(data.description),
            "samples": self.samples,
            "network": self.network,
            "scale": 1.0,
            "confidence": 0.95,
        }

    @functools.cached_property
    def _data(self) -> LabelledImages:
        from dynascope.arguments import require, require_positive
        from dynascope.studies.features.feature_runs import labelled_images

        require_positive(width=self.width, epochs=self.epochs, batch_size=self.batch_size, threshold=self.threshold)
        require(
            self.seeds >= 2,
            f"seeds is {self.seeds}",
            argument="seeds",
            value=self.seeds,
            remedy="choose two or more, so that runs can be told from chance",
        )
        for name, value, known in (
            ("network", self.network, ("mlp", "residual")),
            ("loss", self.loss, ("squared", "cross_entropy")),
        ):
            require(
                value in known,
                f"{name} is {value!r}",
                argument=name,
                value=value,
                remedy=f"choose {' or '.join(known)}",
            )
        data = labelled_images(self.data, self.samples, self.test_samples, self.seed)
        require(
            self.width >= data.classes,
            f"width is {self.width} and there are {data.classes} classes",
            argument="width",
            value=self.width,
            remedy=f"choose at least {data.classes}, so that each class can have its feature",
        )
        fewest = int(self.samples * SIZES[0])
        require(
            fewest > data.classes,
            f"samples is {self.samples}, of which an eighth is trained on too, and there are {data.classes} classes",
            argument="samples",
            value=self.samples,
            remedy=f"choose at least {8 * (data.classes + 1)}",
        )
        return data

    def _runs(self) -> dict[str, FeatureRun]:
        """The classifiers by name."""
        from dynascope.studies.features.feature_runs import FeatureRun

        stages = -(-self.width // 8)
        default = FeatureRun(
            self.network,
            self.width if self.network == "mlp" else stages,
            self.samples,
            self.learning_rate,
            self.weight_decay,
        )
        change = functools.partial(dataclasses.replace, default)
        plain = "convolutional" if self._data.inputs.shape[-1] == 1 and self.network == "mlp" else "residual"
        return {
            "default": default,
            **{f"samples × {each:g}": change(samples=int(each * self.samples)) for each in SIZES[:-1]},
            **{f"learning rate × {each:g}": change(learning_rate=each * self.learning_rate) for each in RATES[:-1]},
            **{
                f"weight decay × {each:g}": change(weight_decay=each * self.weight_decay)
                for each in DECAYS
                if each != 1
            },
            "vgg": change(network="vgg", width=stages),
            "vgg-normalised": change(network="vgg-normalised", width=stages),
            "fully connected": change(network="mlp", width=self.width),
            "convolutional": change(network=plain, width=self.width if plain == "convolutional" else stages),
            **{f"random labels {each:g}": change(random_labels=each) for each in RANDOM[1:]},
        }

    def _trained(self) -> dict[str, list[Trained]]:
        from dynascope.studies.features.feature_runs import train_on_labels

        runs, seeds = self._runs(), range(self.seeds)
        options = {
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "loss": self.loss,
            "augment": self.augment,
        }
        # Runs of different names may be the same.
        train = functools.cache(lambda run: [train_on_labels(run, self._data, seed=seed, **options) for seed in seeds])
        return {name: train(runs[name]) if name in runs else self._regression(name) for name in self._names()}

    def _regression(self, name: str) -> list[Trained]:
        """MLPs on a scalar target, on the classes, on small targets, or with all layers but the last frozen."""
        import numpy as np

        from dynascope.networks import MLP
        from dynascope.studies.features.feature_runs import train_on_targets

        data, hidden = self._data, (2 * self.width, self.width)
        inputs, targets = data.inputs.reshape(self.samples, -1), np.eye(data.classes)[data.labels]
        train = functools.partial(
            train_on_targets, epochs=self.epochs, batch_size=self.batch_size, learning_rate=self.learning_rate
        )
        if name == "last layer only":
            networks = [MLP((inputs.shape[1], *hidden, 1), seed=seed) for seed in range(self.seeds)]
            frozen = [np.asarray(each.features(inputs), float) for each in networks]
            return [found for each in frozen for found in train(each, targets, (), seeds=1)]
        scaled = {
            "rich": targets,
            "downscaled target": targets / _DOWNSCALED,
            "scalar target": data.labels[:, None] / (data.classes - 1),
        }
        return train(inputs, scaled[name], hidden, seeds=self.seeds)

    def _measured(self, trained: Trained) -> dict[str, Any]:
        """The metrics of one network."""
        import numpy as np
        from scipy import special

        from dynascope.probes.features import feature_metrics

        def metrics(function: Literal["logits", "softmax"]) -> dict[str, np.ndarray]:
            found = feature_metrics(*trained[:3], bias=True, output_function=function, threshold=self.threshold)
            return {name: np.asarray(values) for name, (_, values) in found.items()}

        logits, classes = metrics("logits"), trained.targets.shape[1]
        classified = self.loss == "cross_entropy" and np.isfinite(trained.accuracy)
        found = metrics("softmax") if classified else logits
        intensity = found["intensity"] / found["intensity"][0]
        # The intensities 2, C and C + 1, as the first is that of the constant; none is taken below rounding.
        second, last, next_one = np.maximum(intensity[[1, max(classes, 2) - 1, max(classes, 2)]], 1e-12)
        ranks = {
            f"{name}_rank_correlation": _rank_correlation(intensity[: classes + 1], found[name][: classes + 1])
            for name in ("quality", "utilization")
        }
        bound = logits["effective_dimension_utilization"] / logits["output_dimension"]
        if classified:
            loss = -np.mean(np.sum(trained.targets * special.log_softmax(trained.outputs, axis=1), axis=1))
        else:
            loss = np.mean(np.sum((trained.outputs - trained.targets) ** 2, axis=1)) / 2
        return {
            "loss": loss,
            "accuracy": trained.accuracy,
            **{name: found[name][()] for name in _NUMBERS},
            "flatness": last / second,
            "gap": np.log10(last / next_one),
            **ranks,
            "total_utilization": logits["utilization"].sum(),
            "dimension_bound": min(1.0, bound),
            **{name: found[name] for name in _CURVES},
        }

    def _effects(self, measured: dict[str, list[dict[str, Any]]]) -> tuple[list[Hypothesis], list[Effect]]:
        """The hypotheses and what the runs say of each."""
        rates = [name for name in measured if name in {"default", f"learning rate × {RATES[1]:g}"}]
        best = max(rates, key=lambda name: sum(each["accuracy"] for each in measured[name]))
        nothing = [dict.fromkeys(each, 0.0) for each in measured["default"]]
        runs = {**measured, "best learning rate": measured[best], "nothing": nothing}
        effects = [
            claim.compare([[float(each[claim.metric]) for each in runs[level]] for level in levels])
            for claim, levels in self._claims()
        ]
        return [claim for claim, _ in self._claims()], effects


def _rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's coefficient; zero where equal values on all modes have no order."""
    import numpy as np
    from scipy import stats

    ranks = np.array([stats.rankdata(each) for each in (one, other)])
    return float(np.corrcoef(ranks)[0, 1]) if np.all(np.ptp(ranks, axis=1) > 0) else 0.0


def _mean_curve(name: str, runs: Sequence[dict[str, Any]], length: int) -> np.ndarray:
    """The mean over seeds of a curve over modes; NaN beyond the modes that there are."""
    import numpy as np

    values = np.stack([each[name] for each in runs])
    if name == "intensity":
        values = values / values[:, :1]
    return np.pad(values.mean(axis=0), (0, length - values.shape[1]), constant_values=np.nan)
