"""How strong, useful and used the features of a network are, trained fully and in its last layer alone."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

__all__ = ["FeatureMetrics"]

_CURVES = ("test_loss", "accuracy", "kappa_cka", "effective_dimension_utilization")
_OVER_MODES = ("utilization", "cumulative_utilization")
_ONLY_FULL = ("effective_dimension", "effective_dimension_quality", "constant_overlap")
_FULL_OVER_MODES = ("cumulative_utilization", "cumulative_quality", "normalised_intensity")
_EXACT = (1e-6, "the theory is exact, and the solver keeps each step within 1e-10")


@dataclasses.dataclass(frozen=True)
class FeatureMetrics(Study):
    """A network is trained in two ways from one start: fully, and in its last layer alone.

    Alone, the last layer is a linear model on the features of the start. Theory gives its outputs at all times, on
    held-out samples too, and with them its losses, its accuracy, which features it uses and how far these are from
    a minimum. Of full training, where the features change, the same is reported (`full_…`) and nothing is judged.

    Attributes:
        data: "digits" for images and a small convolutional network, or "heaviside" for a step on the line and four
            dense layers.
        samples: Number of training samples; as many others are held out. Digits have equally many of each class, at
            most 870 in all.
        width: Number p of features, and for "heaviside" the width of all layers.
        learning_rate: Of full training, by stochastic gradient descent.
        weight_decay: Of full training, λ of the term λ‖θ‖²/2 in its loss.
        steps: Number of its steps; the last layer alone is trained by gradient flow for as long.
        batch_size: Samples in each of these steps.
        times: Number of times at which both are recorded.
        modes: How many of the strongest modes are recorded one by one.
        threshold: κ below which features are called minimal.
        seed: Seed of the weights, of the samples and of the batches.
    """

    data: Literal["digits", "heaviside"] = "digits"
    samples: int = 800
    width: int = 64
    learning_rate: float = 0.5
    weight_decay: float = 1e-3
    steps: int = 5000
    batch_size: int = 50
    times: int = 40
    modes: int = 12
    threshold: float = 0.1
    seed: int = 0

    name: ClassVar[str] = "feature-metrics"
    reference: ClassVar[Reference] = Reference(
        paper="Y. Nam, C. Mingard, S. H. Lee, S. Hayou, A. Louis, Visualising Feature Learning in Deep Neural Networks "
        "by Diagonalizing the Forward Feature Map; Nam, DPhil thesis (2024), chapter 2",
        arxiv="2410.04264",
        claim="A last layer that is trained alone uses its fixed features along exact curves that are known from the "
        "start; full training, shown beside it, changes the features themselves.",
    )
    minutes: ClassVar[float] = 0.7
    tolerance: ClassVar = curve_tolerance(**dict.fromkeys(("loss", *_CURVES, *_OVER_MODES), _EXACT)) | curve_tolerance(
        accuracy=(0.01, "rounding may turn a sample that lies on the boundary of two classes")
    )
    tiny: ClassVar = {"data": "heaviside", "samples": 60, "width": 12, "steps": 100, "batch_size": 20, "times": 10}

    def observe(self) -> xr.Dataset:
        """Train in both ways, and measure the features and outputs of all recorded times."""
        from dynascope.record import make_record

        alone, full = self._measured(*self._trained_last_layer()), self._measured(*self._trained_fully())
        variables: dict[str, Any] = _judged(alone)
        variables |= {f"full_{name}": (("time",), full[name]) for name in (*_CURVES, *_ONLY_FULL)}
        variables |= {f"full_{name}": (("time", "mode"), full[name]) for name in _FULL_OVER_MODES}
        runs = {"last layer": alone, "full": full}
        variables["regime"] = (("run",), [_regime(each) for each in runs.values()])
        kappas = [f"{name}: κ = {each['kappa_cka'][-1]:.3g} in the end" for name, each in runs.items()]
        attributes = {**self._about(), "threshold": self.threshold, "regimes": kappas}
        return make_record(variables, {**self._coordinates, "run": list(runs)}, attributes=attributes)

    def predict(self) -> xr.Dataset:
        """The modes of the first features, each of which learns its part of the target exponentially."""
        import jax
        import numpy as np

        from dynascope.probes.features import eigenfeatures
        from dynascope.record import make_record
        from dynascope.theory.modes import linear_mode_strength

        # The bias is a feature that is one everywhere.
        features = np.pad(self._start, ((0, 0), (0, 1)), constant_values=1.0)
        modes = eigenfeatures(features[: self._count])
        values = features @ modes.directions
        outputs = self._start @ self._network.classifier + self._network.classifier_bias
        missing = values[: self._count].T @ (self._data[1] - outputs)[: self._count] / self._count
        rates = np.where(modes.intensity > 0, modes.intensity, 1.0)
        with jax.enable_x64(True):
            learned = linear_mode_strength(self._times[:, None, None], missing, rates[:, None])
        curves = self._measured([self._start] * len(self._times), outputs + values @ np.asarray(learned))
        attributes = {"theory": "gradient flow of a linear model on fixed features", "reference": self.reference.paper}
        return make_record(_judged(curves), self._coordinates, attributes={**attributes, **self._about()})

    def _trained_last_layer(self) -> tuple[list[np.ndarray], np.ndarray]:
        """The features and outputs at all times, of the last layer as a network on the features."""
        import equinox as eqx

        from dynascope.flows import gradient_flow
        from dynascope.networks import MLP
        from dynascope.tasks import Task

        network, targets = self._network, self._data[1]
        layer = eqx.tree_at(
            lambda layer: (layer.weights, layer.biases),
            MLP((self.width, targets.shape[1])),
            ((network.classifier,), (network.classifier_bias,)),
        )
        run = gradient_flow(
            layer,
            Task(self._start[: self._count], targets[: self._count]),
            duration=float(self._times[-1]),
            save=self._times,
            statistics={"classifier": (_classifier, ("feature", "target")), "bias": (_bias, ("target",))},
            relative_tolerance=1e-10,
        )
        outputs = self._start @ run["classifier"].to_numpy() + run["bias"].to_numpy()[:, None]
        return [self._start] * len(self._times), outputs

    def _trained_fully(self) -> tuple[np.ndarray, np.ndarray]:
        from dynascope.flows import descend
        from dynascope.tasks import Task

        inputs, targets = self._data
        run = descend(
            self._network,
            Task(inputs[: self._count], targets[: self._count]),
            steps=self.steps,
            learning_rate=self.learning_rate,
            optimizer=functools.partial(_descent_with_decay, weight_decay=self.weight_decay),
            batch_size=self.batch_size,
            record_steps=self._steps,
            statistics={
                "features": (lambda network: network.features(inputs), ("sample", "feature")),
                "outputs": (lambda network: network(inputs), ("sample", "target")),
            },
            seed=self.seed,
        )
        return run["features"].to_numpy(), run["outputs"].to_numpy()

    def _measured(self, features: Any, outputs: np.ndarray) -> dict[str, np.ndarray]:
        """All metrics at all times; overlaps on held-out digits, and for the step on the grid, which is all of it."""
        import numpy as np

        from dynascope.probes.features import feature_metrics

        targets, count = self._data[1], self._count
        found = []
        for h, f in zip(features, outputs, strict=True):
            metrics = feature_metrics(
                h[:count],
                f[:count],
                targets[:count],
                held_out=(h[count:], f[count:], targets[count:]) if self.data == "digits" else None,
                bias=True,
                threshold=self.threshold,
            )
            each = {name: np.asarray(value)[: self.modes] if dims else value for name, (dims, value) in metrics.items()}
            squares = np.sum((f - targets) ** 2, axis=1) / 2
            each |= {"loss": np.mean(squares[:count]), "test_loss": np.mean(squares[count:])}
            each["accuracy"] = np.mean(_classes(f[count:]) == _classes(targets[count:]))
            each["normalised_intensity"] = each["intensity"] / each["intensity"][0]
            found.append(each)
        return {name: np.array([each[name] for each in found]) for name in found[0]}

    @functools.cached_property
    def _start(self) -> np.ndarray:
        """Features of all samples at the start."""
        import jax
        import numpy as np

        inputs, _ = self._data
        with jax.enable_x64(True):
            return np.asarray(self._network.features(inputs))

    @functools.cached_property
    def _network(self) -> Any:
        import equinox as eqx
        import numpy as np

        from dynascope.networks import MLP, Convolutional

        if self.data == "digits":
            return Convolutional((8, 8), 10, width=self.width, seed=self.seed)
        network = MLP((1, self.width, self.width, self.width, 1), seed=self.seed)
        # Without biases the network would be linear on either side of zero.
        draw = np.random.default_rng([self.seed, 1])
        biases = tuple(draw.uniform(-1, 1, w.shape[1]) / np.sqrt(w.shape[0]) for w in network.weights)
        return eqx.tree_at(lambda network: network.biases, network, biases)

    @functools.cached_property
    def _data(self) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets: the training samples, then as many held-out ones."""
        import numpy as np

        from dynascope.arguments import require, require_positive, require_seed

        require_seed(self.seed)
        require_positive(width=self.width, learning_rate=self.learning_rate, threshold=self.threshold)
        require(
            0 <= self.weight_decay < np.inf,
            f"weight_decay is {self.weight_decay}",
            argument="weight_decay",
            value=self.weight_decay,
            remedy="choose zero or a positive number",
        )
        require(
            self.data in ("digits", "heaviside"),
            f"data is {self.data!r}",
            argument="data",
            value=self.data,
            remedy="choose digits or heaviside",
        )
        for field, least in (("steps", 1), ("batch_size", 1), ("times", 2), ("modes", 1)):
            value = getattr(self, field)
            require(
                value >= least, f"{field} is {value}", argument=field, value=value, remedy=f"choose {least} or more"
            )
        most = 870 if self.data == "digits" else np.inf
        require(
            20 <= self.samples <= most,
            f"samples is {self.samples}",
            argument="samples",
            value=self.samples,
            remedy="choose 20 to 870" if self.data == "digits" else "choose 20 or more",
        )
        require(
            self.batch_size <= self.samples // 10 * 10,
            f"batch_size is {self.batch_size}",
            argument="batch_size",
            value=self.batch_size,
            remedy="choose no more than there are training samples",
        )
        draw = np.random.default_rng([self.seed, 2])
        if self.data == "heaviside":
            grid = (2 * np.arange(self.samples) + 1) / self.samples - 1
            x = np.concatenate([grid, draw.uniform(-1, 1, len(grid))])[:, None]
            return x, (x > 0).astype(float)
        from dynascope.tasks import digits

        task, each = digits(), self.samples // 10
        labels = np.argmax(task.targets, axis=1)
        rows = np.stack([draw.permutation(np.flatnonzero(labels == label))[: 2 * each] for label in range(10)])
        rows = np.concatenate([rows[:, :each].ravel(), rows[:, each:].ravel()])
        return task.inputs[rows], np.eye(10)[labels[rows]]

    @property
    def _count(self) -> int:
        """Number of training samples."""
        return len(self._data[0]) // 2

    @functools.cached_property
    def _steps(self) -> np.ndarray:
        import numpy as np

        # More often at first, when most happens.
        return np.unique((self.steps * np.linspace(0, 1, self.times) ** 2).round().astype(int))

    @property
    def _times(self) -> np.ndarray:
        return self.learning_rate * self._steps

    @property
    def _coordinates(self) -> dict[str, Any]:
        return {"time": self._times, "mode": list(range(1, min(self.modes, self.width + 1) + 1))}

    def _about(self) -> dict[str, Any]:
        pictures = self.data == "digits"
        return {
            "task": "digits" if pictures else "a step on the line",
            "description": [
                "Handwritten digits of 8 × 8 pixels and one-hot targets, equally many of each class."
                if pictures
                else "The targets are 0 for x < 0 and 1 for x > 0, on a grid over [−1, 1]; held-out inputs are random.",
                f"{self._count} samples for training and as many held out.",
                f"Overlaps are those on the {'held-out samples' if pictures else 'grid'}.",
                "The bias of the last layer counts as a feature.",
            ],
            "network": "convolutional" if pictures else "four dense layers",
            "scale": 1.0,
        }


def _descent_with_decay(learning_rate: Any, *, weight_decay: float) -> Any:
    import optax

    return optax.chain(optax.add_decayed_weights(weight_decay), optax.sgd(learning_rate))


def _classes(outputs: np.ndarray) -> np.ndarray:
    return outputs.argmax(axis=1) if outputs.shape[1] > 1 else outputs[:, 0] > 0.5


def _judged(curves: dict[str, np.ndarray]) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    variables = {name: (("time",), curves[name]) for name in ("loss", *_CURVES)}
    return {**variables, **{name: (("time", "mode"), curves[name]) for name in _OVER_MODES}}


def _regime(curves: dict[str, np.ndarray]) -> str:
    return "minimum features" if curves["minimum_features"][-1] else "extended features"


def _classifier(network: Any) -> Any:
    return network.weights[0]


def _bias(network: Any) -> Any:
    return network.biases[0]
