"""Classes collapse: free features along the exact path of theory, and networks whatever their labels mean."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.studies.features.collapsing_networks import LABELS, NETWORKS, CollapsingNetworks
from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from dynascope.theory.features.unconstrained import ClassModes

__all__ = ["NeuralCollapse"]

_EXACT = (1e-6, "the theory is exact, and the solver keeps each step within 1e-10")
_SMALL = (1e-3, "the end differs from that of a vanishing start by the square of its size, at most 0.02")


@dataclasses.dataclass(frozen=True)
class NeuralCollapse(Study):
    """Neural collapse where it is understood, and where it is only seen.

    Judged is the unconstrained feature model, whose features are free parameters, trained by gradient flow. From an
    aligned start: the `loss`, the `mode_strength` of each mode, the distances `class_mean_norm` of the class means from
    their mean, and `nc3` between them and the classifier, at all times. From random small starts: the inner products
    `end_class_mean_gram` and `end_classifier_gram` in the end, and `end_between_class_share`, the share of the variance
    of features that is between classes.

    Reported and not judged are a small convolutional network and a multilayer perceptron on digits with four kinds of
    labels, over the steps of training: `network_nc1` to `network_nc4` (with a centred classifier), `network_kappa_cka`
    (zero for minimal features), `network_effective_dimension` (the number of features besides the constant),
    `network_loss`, and the accuracies on the labels of training and on the true labels of held-out digits. Classes are
    those of the labels of training. A regression on the digit has one output, and decides for the nearest digit; this
    is a linear classifier too, whose metrics are given.

    Attributes:
        class_sizes: Number of samples of each class of the unconstrained feature model.
        features: Number of its features, at least that of the classes.
        initial_strength: Singular value of the outputs at the aligned start, below those of the targets.
        random_scale: Size of the random starts: the Frobenius norm of features and classifier, if both have the rate
            one, or else that with which the layers are balanced; at most 0.02.
        feature_rate: Learning rate of the features.
        classifier_rate: Learning rate of the classifier.
        starts: Number of random starts.
        times: Number of times at which the aligned start is recorded.
        networks: Which networks to train on digits, of "convolutional" and "mlp"; may be empty.
        labels: How digits are labelled, of "true labels", "10 % random labels", "100 % random labels" and "scalar
            regression".
        samples: Number of digits for training; as many others are held out. 50 to 898.
        width: Number of features of the networks.
        learning_rate: Of Adam, for the networks; it falls to zero as a cosine.
        weight_decay: λ > 0 of the term λ‖θ‖²/2 in their loss.
        steps: Number of steps of training.
        batch_size: Samples in a step.
        seed: Seed of all weights, of the labels and of the batches.
    """

    class_sizes: list[int] = dataclasses.field(default_factory=lambda: [10, 10, 10, 10])
    features: int = 9
    initial_strength: float = 1e-3
    random_scale: float = 0.01
    feature_rate: float = 1.0
    classifier_rate: float = 1.0
    starts: int = 3
    times: int = 200
    networks: list[str] = dataclasses.field(default_factory=lambda: list(NETWORKS))
    labels: list[str] = dataclasses.field(default_factory=lambda: list(LABELS))
    samples: int = 300
    width: int = 64
    learning_rate: float = 5e-3
    weight_decay: float = 3e-3
    steps: int = 4000
    batch_size: int = 50
    seed: int = 0

    name: ClassVar[str] = "neural-collapse"
    reference: ClassVar[Reference] = Reference(
        paper="D. G. Mixon, H. Parshall, J. Pi, Neural collapse with unconstrained features; theory in Y. Nam, DPhil "
        "thesis (2024), chapter 3",
        arxiv="2011.11619",
        claim="Unconstrained features of each class collapse to one point along exact curves, to an end that almost "
        "every small start shares; networks with true, random and scalar labels are shown beside them.",
    )
    along: ClassVar = ("time", "start")
    minutes: ClassVar[float] = 1.0
    tolerance: ClassVar = curve_tolerance(
        **dict.fromkeys(("loss", "mode_strength", "class_mean_norm", "nc3"), _EXACT),
        **dict.fromkeys(("end_class_mean_gram", "end_classifier_gram", "end_between_class_share"), _SMALL),
    )
    tiny: ClassVar = {
        "class_sizes": [4, 4, 4],
        "features": 4,
        "starts": 1,
        "times": 30,
        "networks": [],
    }

    def observe(self) -> xr.Dataset:
        """Train the unconstrained features by gradient flow, then the networks by Adam."""
        from dynascope.record import make_record

        variables = {**self._trained_features(), **self._networks.measure()}
        return make_record(variables, self._coordinates(variables), attributes=self._about())

    def predict(self) -> xr.Dataset:
        """The closed form of the path from the aligned start, and the end that small starts share."""
        import jax
        import numpy as np

        from dynascope.record import make_record
        from dynascope.theory.features.unconstrained import collapse_end, collapse_trajectory

        a, b = self._aligned_sizes
        rates: Any = {"feature_rate": self.feature_rate, "classifier_rate": self.classifier_rate}
        with jax.enable_x64(True):
            path = jax.device_get(collapse_trajectory(self._times[:-1], self.class_sizes, a, b, **rates))
            end = jax.device_get(collapse_end(self.class_sizes, **rates))
        centring = np.eye(len(self.class_sizes)) - 1 / len(self.class_sizes)
        powers = np.diagonal(centring @ path.class_mean_gram @ centring, axis1=1, axis2=2)

        def shared(values: np.ndarray) -> np.ndarray:
            return np.broadcast_to(values, (self.starts, *np.shape(values)))

        variables = {
            "loss": (("time",), path.loss),
            "mode_strength": (("time", "mode"), path.singular_value),
            "class_mean_norm": (("time", "class"), np.sqrt(powers)),
            "nc3": (("time",), path.nc3),
            "end_class_mean_gram": (("start", "class", "target"), shared(end.class_mean_gram)),
            "end_classifier_gram": (("start", "class", "target"), shared(end.classifier_gram)),
            "end_between_class_share": (("start",), shared(np.ones(()))),
        }
        attributes = {"theory": "unconstrained feature model", "reference": self.reference.paper, **self._about()}
        return make_record(variables, self._coordinates(variables), attributes=attributes)

    def _trained_features(self) -> dict[str, Any]:
        """One network on one-hot inputs, so that its first layer is the features: the aligned and the random starts."""
        import equinox as eqx
        import numpy as np

        from dynascope.flows import gradient_flow
        from dynascope.networks import TwoLayer
        from dynascope.probes.neural_collapse import class_moments, collapse_metrics
        from dynascope.tasks import Task

        labels, classes = np.repeat(np.arange(len(self.class_sizes)), self.class_sizes), len(self.class_sizes)
        network = TwoLayer(len(labels), self.features, classes, activation="linear")
        starts = [self._aligned_start, *(self._random_start(seed) for seed in range(self.starts))]
        networks = [eqx.tree_at(lambda each: (each.first, each.second), network, start) for start in starts]
        run = gradient_flow(
            networks,
            Task(np.eye(len(labels)), np.eye(classes)[labels]),
            duration=float(self._times[-1]),
            save=self._times,
            learning_rate={"first": self.feature_rate, "second": self.classifier_rate},
            statistics={"h": (_features, ("sample", "feature")), "w": (_classifier, ("feature", "target"))},
            relative_tolerance=1e-10,
        )
        h, w = run["h"].to_numpy(), run["w"].to_numpy()
        modes, path = self._modes, slice(None, -1)
        left = modes.sample_vector[labels]
        moments = [class_moments(each, labels, classes=classes) for each in h[0, path]]
        metrics = [collapse_metrics(each, classifier) for each, classifier in zip(moments, w[0, path], strict=True)]
        ends = [class_moments(each, labels, classes=classes) for each in h[1:, -1]]
        within = np.array([np.trace(each.scatter) for each in ends])
        between = np.array([np.sum(each.sizes[:, None] * (each.means - each.means.mean(0)) ** 2) for each in ends])
        return {
            "loss": (("time",), run["loss"].to_numpy()[0, path]),
            "mode_strength": (("time", "mode"), np.sum((left.T @ h[0] @ w[0])[path] * modes.output_vector.T, axis=2)),
            "class_mean_norm": (("time", "class"), np.array([each["class_mean_norm"][1] for each in metrics])),
            "nc3": (("time",), np.array([each["nc3"][1] for each in metrics])),
            "end_class_mean_gram": (
                ("start", "class", "target"),
                np.array([each.means @ each.means.T for each in ends]),
            ),
            "end_classifier_gram": (("start", "class", "target"), w[1:, -1].mT @ w[1:, -1]),
            "end_between_class_share": (("start",), between / (between + within)),
        }

    @functools.cached_property
    def _modes(self) -> ClassModes:
        from dynascope.arguments import require_between, require_integer
        from dynascope.theory.features.unconstrained import class_modes

        self._check()
        modes = class_modes(self.class_sizes)
        require_integer(least=len(modes.strength), features=self.features)
        require_between(0, float(modes.strength[-1]), open_below=True, initial_strength=self.initial_strength)
        return modes

    def _check(self) -> None:
        from dynascope.arguments import require, require_between, require_integer, require_positive, require_seed

        require_seed(self.seed)
        positive = ("feature_rate", "classifier_rate", "learning_rate", "weight_decay", "width", "steps")
        require_positive(**{name: getattr(self, name) for name in positive})
        require_between(0, 0.02, open_below=True, random_scale=self.random_scale)
        require_integer(starts=self.starts)
        require_integer(least=2, times=self.times)
        require_integer(least=50, most=898, samples=self.samples)
        require_integer(most=self.samples, batch_size=self.batch_size)
        for field, known in (("networks", NETWORKS), ("labels", LABELS)):
            unknown = [each for each in getattr(self, field) if each not in known]
            require(
                not unknown,
                f"{field} names {unknown}",
                argument=field,
                value=unknown,
                remedy=f"choose from {', '.join(known)}",
            )

    @property
    def _tilt(self) -> float:
        """How much larger features are than the classifier where the layers are balanced: (η_H/η_W)^½."""
        return (self.feature_rate / self.classifier_rate) ** 0.5

    @property
    def _aligned_sizes(self) -> tuple[float, float]:
        """Singular values of H and W of the aligned start."""
        _ = self._modes  # for its checks
        return (self.initial_strength * self._tilt) ** 0.5, (self.initial_strength / self._tilt) ** 0.5

    @property
    def _aligned_start(self) -> tuple[np.ndarray, np.ndarray]:
        import numpy as np

        modes, (a, b) = self._modes, self._aligned_sizes
        draw = np.random.default_rng(self.seed).normal(size=(self.features, len(modes.strength)))
        turn = np.linalg.qr(draw)[0]
        left = np.repeat(modes.sample_vector, self.class_sizes, axis=0)
        return a * left @ turn.T, b * turn @ modes.output_vector.T

    def _random_start(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        import numpy as np

        draw, classes = np.random.default_rng([self.seed, 1, seed]), len(self.class_sizes)
        shapes = (sum(self.class_sizes), self.features), (self.features, classes)
        h, w = (self.random_scale * each / np.linalg.norm(each) for each in map(draw.standard_normal, shapes))
        return h * self._tilt**0.5, w / self._tilt**0.5

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Until the aligned start has long learned its weakest mode; last, until random starts have too."""
        import numpy as np

        strength, rate = self._modes.strength, (self.feature_rate * self.classifier_rate) ** 0.5
        pace = sum(self.class_sizes) / (2 * rate * strength)
        aligned = np.max(pace * (np.log(strength / self.initial_strength) + 8))
        # No mode starts much below the scale over √n, and none needs more than thirty times its pace to settle.
        random = np.max(pace) * (2 * np.log(sum(self.class_sizes) / self.random_scale) + 30)
        return np.append(np.linspace(0.0, aligned, self.times), max(random, 1.01 * aligned))

    @functools.cached_property
    def _networks(self) -> CollapsingNetworks:
        fields = [field.name for field in dataclasses.fields(CollapsingNetworks)]
        values = {name: getattr(self, name) for name in fields}
        return CollapsingNetworks(**{**values, "networks": tuple(self.networks), "labels": tuple(self.labels)})

    def _coordinates(self, variables: dict[str, Any]) -> dict[str, Any]:
        import numpy as np

        classes = len(self.class_sizes)
        labels = {
            "time": self._times[:-1],
            "mode": np.arange(1, classes + 1),
            "start": np.arange(self.starts),
            "class": np.arange(classes),
            "target": np.arange(classes),
            "architecture": list(self.networks),
            "run": list(self.labels),
            "step": self._networks.recorded,
        }
        return {name: labels[name] for dimensions, _ in variables.values() for name in dimensions}

    def _about(self) -> dict[str, Any]:
        return {
            "task": "one-hot labels of free features, and digits",
            "description": [
                f"{sum(self.class_sizes)} samples in classes of sizes {self.class_sizes}, with one-hot targets.",
                f"{self.samples} digits of 8 × 8 pixels for training, and as many held out.",
            ],
            "network": "unconstrained features",
            "scale": 1.0,
        }


def _features(network: Any) -> Any:
    return network.first


def _classifier(network: Any) -> Any:
    return network.second
