"""Small targets make a network lazy: what its features and its function then approach, and how fast."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from dynascope.networks import MLP
    from dynascope.studies.features.feature_runs import LabelledImages
    from dynascope.studies.regimes.lazy_networks import Trained
    from dynascope.theory.modes.scalar import Setting

__all__ = ["LazyRichFeatures"]

_LINEARISED, _LAST_LAYER = "linearised", "last layer only"
_SMOOTH = ("tanh", "erf", "gelu")
_LAZIEST = 1e6
_STEP = 0.25  # of descent, in the fastest time constant
_TWO_ORDERS = (1e-3, "two orders of the expansion are known, and the next is smaller by the square of the downscaling")
_ONE_ORDER = (0.02, "one order of the expansion is known, and the next is smaller by the downscaling")
_SAME = (1e-6, "both follow the same linear recursion, by different code")
_EXACT = (1e-6, "the theory is exact for every step of descent")


@dataclasses.dataclass(frozen=True)
class LazyRichFeatures(Study):
    """A network F = α (f − f₀), f₀ its start, learns labels y as f does those divided by α; large α make it lazy.

    Expanded in 1/α, F = F₁ + F₂/α + …, where F₁ is the network linearised in all its weights at the start, and not the
    one of which the last layer alone is trained. Both terms, and by how much the features of the last layer move, are
    found without training and compared with networks that were trained at lazy α: losses, test errors, the distance to
    the linearised network times α (`correction`), the movement of the features times α (`feature_movement`), and their
    distance κ_CKA to a minimum (`lazy_kappa_cka`). So are the linearised network and the last layer trained alone.

    Measured for all α, and reported as hypotheses, is what happens to features on the way from rich to lazy: κ_CKA,
    effective dimensions, similarity to those of the start, test error, and to which of the two limits the function
    comes closer.

    In a network of one input and many linear neurons richness is one number, the final growth of the weights ln γ₊
    (`final_log_growth`). It is compared for a start of weights ±1, with √factor times smaller weights, a factor times
    larger targets or smaller outputs, which are all as rich, and widened with outputs over √width, which is lazier
    the wider it is.

    Attributes:
        data: "digits", or the path of labelled images.
        samples: Number of training images.
        test_samples: Largest number of test images.
        width: Number of neurons in each hidden layer.
        hidden_layers: Number of hidden layers.
        activation: "tanh", "erf" or "gelu", smooth as the expansion needs.
        rich: Factors α that are measured.
        lazy: Larger factors α, at most 1e6, that are also compared with theory.
        duration: Time of training in units of the fastest time constant of the linearised network.
        times: Number of times at which both are recorded, at equal ratios.
        seeds: Number of initialisations.
        factor: By how much the scalar network is made richer.
        scalar_neurons: Its number of neurons, even.
        scalar_target: Slope S > 0 that it learns.
        seed: Seed of the data, and of the first initialisation.
    """

    data: str = "digits"
    samples: int = 200
    test_samples: int = 500
    width: int = 32
    hidden_layers: int = 3
    activation: Literal["tanh", "erf", "gelu"] = "tanh"
    rich: list[float] = dataclasses.field(default_factory=lambda: [1.0, 3.0, 10.0, 30.0, 100.0])
    lazy: list[float] = dataclasses.field(default_factory=lambda: [300.0, 3000.0])
    duration: float = 2000.0
    times: int = 50
    seeds: int = 2
    factor: float = 10.0
    scalar_neurons: int = 4
    scalar_target: float = 3.0
    seed: int = 0

    name: ClassVar[str] = "lazy-rich-features"
    reference: ClassVar[Reference] = Reference(
        paper="Y. Nam, Layerwise dynamics and inductive bias (DPhil thesis, chapter 6); L. Chizat, E. Oyallon, F. "
        "Bach, On Lazy Training in Differentiable Programming",
        arxiv="1812.07956",
        claim="With small targets a network learns as its linearisation does and keeps its features, up to corrections "
        "in proportion to the targets that are known from the start.",
    )
    along: ClassVar = ("time", "scaling_parameter", "knob")
    minutes: ClassVar[float] = 1.0
    tolerance: ClassVar = curve_tolerance(
        **dict.fromkeys(("loss", "test_error", "lazy_kappa_cka"), _TWO_ORDERS),
        correction=_ONE_ORDER,
        feature_movement=_ONE_ORDER,
        linearised_test_error=_SAME,
        last_layer_test_error=_EXACT,
        final_log_growth=(1e-6, "the theory is exact, and training ends thirty time constants later"),
    )
    tiny: ClassVar = {
        **{"samples": 40, "test_samples": 50, "width": 12, "hidden_layers": 1},
        **{"rich": [3.0], "lazy": [300.0], "duration": 20.0, "times": 10},
    }

    def observe(self) -> xr.Dataset:
        """Train the networks at every α, their linearisations and their last layers, and the scalar networks."""
        import numpy as np

        from dynascope.comparison.effect import report_effects
        from dynascope.record import make_record
        from dynascope.studies.regimes.lazy_claims import put_claims
        from dynascope.studies.regimes.scalar_richness import final_growth

        # Before anything is trained, so that a field out of range is told at once.
        scalars = self._scalars
        runs = {_named(alpha): self._trained("all layers", alpha) for alpha in self._alphas}
        runs |= {kind: self._trained(kind, 1.0) for kind in (_LINEARISED, _LAST_LAYER)}
        measured = {name: self._measured(run, runs) for name, run in runs.items()}
        claims, effects = put_claims([measured[_named(alpha)] for alpha in self._alphas], measured[_LAST_LAYER])
        lazy = {alpha: runs[_named(alpha)] for alpha in self.lazy}
        limits = (self._errors(runs[kind].outputs)[1] for kind in (_LINEARISED, _LAST_LAYER))
        correction = [alpha * self._distance(run.outputs, runs[_LINEARISED].outputs) for alpha, run in lazy.items()]
        return make_record(
            {
                **self._curves(
                    np.stack([run.outputs for run in lazy.values()], axis=1),
                    np.stack(correction, axis=1),
                    np.stack([alpha * run.movement for alpha, run in lazy.items()], axis=1),
                    *limits,
                ),
                "lazy_kappa_cka": (
                    ("seed", "scaling_parameter"),
                    np.transpose([measured[_named(alpha)]["kappa_cka"] for alpha in self.lazy]),
                ),
                "final_log_growth": (("knob",), final_growth(scalars.values())),
                **{
                    name: (("run", "seed"), np.array([each[name] for each in measured.values()]))
                    for name in measured[_LINEARISED]
                },
                **report_effects(claims, effects),
            },
            {
                **self._coordinates,
                "run": list(runs),
                "hypothesis": [f"{claim.name} ({k})" for k, claim in enumerate(claims, start=1)],
            },
            attributes={"confidence": 0.95, **self._about()},
        )

    def predict(self) -> xr.Dataset:
        """Two orders of the expansion at every lazy α, the last layer as a linear model, and the scalar network."""
        import jax
        import numpy as np

        from dynascope.probes.features import kappa_cka
        from dynascope.record import make_record
        from dynascope.studies.regimes.lazy_networks import expand
        from dynascope.theory.modes.scalar import Setting, limit

        # Before anything is computed, so that a field out of range is told at once.
        scalars = Setting(*map(np.stack, zip(*self._scalars.values(), strict=True)))
        inputs, targets, others = self._split
        found = expand(self._networks, inputs, targets, others, self._steps, learning_rate=self._rate)
        outputs = np.stack([found.first + found.second / alpha for alpha in self.lazy], axis=1)
        features = np.stack([found.start + found.change / alpha for alpha in self.lazy], axis=1)
        same = np.ones((1, len(self.lazy), 1))
        last = np.stack([self._last_layer(h) for h in self._start_features])
        kappa = [
            [float(kappa_cka(h, f[-1, : self.samples])) for h, f in zip(*each, strict=True)]
            for each in zip(features, outputs, strict=True)
        ]
        with jax.enable_x64(True):
            growth = limit(scalars).log_growth
        return make_record(
            {
                **self._curves(
                    outputs,
                    self._distance(found.second, 0)[:, None] * same,
                    found.movement[:, None] * same,
                    self._errors(found.first)[1],
                    self._errors(last)[1],
                ),
                "lazy_kappa_cka": (("seed", "scaling_parameter"), kappa),
                "final_log_growth": (("knob",), growth),
            },
            self._coordinates,
            attributes={"theory": "expansion in small targets", "reference": self.reference.paper, **self._about()},
        )

    def _curves(
        self,
        outputs: np.ndarray,
        correction: np.ndarray,
        movement: np.ndarray,
        linearised: np.ndarray,
        last: np.ndarray,
    ) -> dict[str, Any]:
        """What both sides hold along time; outputs have the shape (seeds, lazy, times, m, c)."""
        loss, error = self._errors(outputs)
        curves = ("seed", "scaling_parameter", "time")
        return {
            "loss": (curves, loss),
            "test_error": (curves, error),
            "correction": (curves, correction),
            "feature_movement": (curves, movement),
            "linearised_test_error": (("seed", "time"), linearised),
            "last_layer_test_error": (("seed", "time"), last),
        }

    def _errors(self, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """½ E‖F − y‖² over training samples and over the others, of outputs (..., m, c)."""
        import numpy as np

        each = np.sum((outputs - self._labels) ** 2, axis=-1) / 2
        return each[..., : self.samples].mean(axis=-1), each[..., self.samples :].mean(axis=-1)

    def _distance(self, outputs: np.ndarray, other: np.ndarray | float) -> np.ndarray:
        """√E‖F − G‖² on the test inputs."""
        import numpy as np

        difference = (outputs - other)[..., self.samples :, :]
        return np.sqrt(np.mean(np.sum(difference**2, axis=-1), axis=-1))

    def _trained(self, kind: str, divisor: float) -> Trained:
        from dynascope.studies.regimes.lazy_networks import train

        inputs, targets, _ = self._split
        return train(
            self._networks,
            kind,
            inputs,
            targets,
            self._steps,
            self._statistics,
            divisor=divisor,
            learning_rate=self._rate,
        )

    def _last_layer(self, features: np.ndarray) -> np.ndarray:
        """Outputs (times, m, c) of a linear model on features of all inputs and a bias, from zero, mode by mode."""
        import numpy as np

        from dynascope.theory.features import eigenspectrum

        rows, targets = np.column_stack([features, np.ones(len(features))]), self._split[1]
        spectrum = eigenspectrum(rows[: self.samples])
        modes = spectrum.eigenfeatures(rows)
        learned = 1 - (1 - self._rate * spectrum.intensity) ** self._steps[:, None]
        return (modes * learned[:, None]) @ (modes[: self.samples].T @ targets / self.samples)

    def _measured(self, run: Trained, runs: dict[str, Trained]) -> dict[str, Any]:
        """The metrics of a run at its end, for each seed."""
        from dynascope.studies.regimes.lazy_claims import final_features

        outputs, n = run.outputs[:, -1], self.samples
        correct = outputs[:, n:].argmax(axis=-1) == self._labels[n:].argmax(axis=-1)
        return {
            **final_features(run.features, outputs[:, :n], self._start_features[:, :n], self._split[1]),
            "distance_to_linearised": self._distance(outputs, runs[_LINEARISED].outputs[:, -1]),
            "distance_to_last_layer": self._distance(outputs, runs[_LAST_LAYER].outputs[:, -1]),
            "final_test_error": self._errors(outputs)[1],
            "test_accuracy": correct.mean(axis=-1),
        }

    @functools.cached_property
    def _scalars(self) -> dict[str, Setting]:
        from dynascope.studies.regimes.scalar_richness import turned

        return turned(self.scalar_neurons, self.scalar_target, self.factor)

    @property
    def _alphas(self) -> list[float]:
        return [*self.rich, *self.lazy]

    def _check(self) -> None:
        """Before anything is computed.

        Raises:
            InputError: A field out of range, other than those of the data.
        """
        import numpy as np

        from dynascope.arguments import require, require_array, require_positive

        require_positive(width=self.width, hidden_layers=self.hidden_layers, duration=self.duration)
        for name, values, fewest in (("rich", self.rich, 0), ("lazy", self.lazy, 1)):
            factors = require_array(name, values, (None,))
            require(
                bool(np.all(factors > 0) and np.all(np.diff(factors) > 0)) and len(factors) >= fewest,
                f"{name} is {values}",
                argument=name,
                value=values,
                remedy="give positive numbers in increasing order",
            )
        require(
            len(self._alphas) >= 2 and bool(np.all(np.diff(self._alphas) > 0)),
            f"rich is {self.rich} and lazy {self.lazy}",
            argument="lazy",
            value=self.lazy,
            remedy="give larger factors than the rich ones, and two or more in all",
        )
        require(
            max(self.lazy) <= _LAZIEST,
            f"lazy is {self.lazy}",
            argument="lazy",
            value=self.lazy,
            remedy="choose factors up to 1e6, beyond which f − f₀ is lost in rounding",
        )
        require(
            self.seeds >= 2,
            f"seeds is {self.seeds}",
            argument="seeds",
            value=self.seeds,
            remedy="choose two or more, so that runs can be told from chance",
        )
        require(
            self.activation in _SMOOTH,
            f"activation is {self.activation!r}",
            argument="activation",
            value=self.activation,
            remedy=f"choose one of {', '.join(_SMOOTH)}, which are smooth",
        )

    @functools.cached_property
    def _data(self) -> LabelledImages:
        from dynascope.arguments import require
        from dynascope.studies.features.feature_runs import labelled_images

        self._check()
        data = labelled_images(self.data, self.samples, self.test_samples, self.seed)
        require(
            self.samples > data.classes,
            f"samples is {self.samples}, and there are {data.classes} classes",
            argument="samples",
            value=self.samples,
            remedy=f"choose more than {data.classes}",
        )
        return data

    @functools.cached_property
    def _labels(self) -> np.ndarray:
        """One column for each class, for the training images and then for the others."""
        import numpy as np

        return np.eye(self._data.classes)[np.concatenate([self._data.labels, self._data.test_labels])]

    @functools.cached_property
    def _split(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Training images, their targets, and the other images."""
        import numpy as np

        inputs, others = (
            np.asarray(each, np.float64).reshape(len(each), -1) for each in (self._data.inputs, self._data.test_inputs)
        )
        return inputs, self._labels[: self.samples], others

    @functools.cached_property
    def _networks(self) -> list[MLP]:
        from dynascope.networks import MLP

        widths = (self._split[0].shape[1], *[self.width] * self.hidden_layers, self._data.classes)
        return [MLP(widths, activation=self.activation, seed=self.seed + k) for k in range(self.seeds)]

    @functools.cached_property
    def _start_features(self) -> np.ndarray:
        """Features of all images at the start, shape (seeds, m, p)."""
        import jax
        import numpy as np

        points = np.concatenate([self._split[0], self._split[2]])
        with jax.enable_x64(True):
            return np.stack([np.asarray(network.features(points)) for network in self._networks])

    @functools.cached_property
    def _statistics(self) -> dict[str, Any]:
        from dynascope.studies.regimes.lazy_networks import measures

        return measures(self._split[0], self._split[2])

    @functools.cached_property
    def _rate(self) -> float:
        """The learning rate, a fraction of the fastest time constant of the first network's linearisation."""
        from dynascope.studies.regimes.lazy_networks import fastest_rate

        return _STEP / fastest_rate(self._networks[0], self._split[0])

    @functools.cached_property
    def _steps(self) -> np.ndarray:
        import numpy as np

        from dynascope.arguments import require

        last = round(self.duration / _STEP)
        require(
            2 <= self.times <= last,
            f"times is {self.times}, and there are {last} steps",
            argument="times",
            value=self.times,
            remedy="choose two or more, and a longer duration if there are fewer steps",
        )
        return np.unique(np.append(0, np.geomspace(1, last, self.times).round().astype(int)))

    @property
    def _coordinates(self) -> dict[str, Any]:
        return {
            "seed": range(self.seed, self.seed + self.seeds),
            "scaling_parameter": self.lazy,
            "time": _STEP * self._steps,
            "knob": list(self._scalars),
        }

    def _about(self) -> dict[str, Any]:
        data = self._data
        return {
            "task": data.name,
            "description": [
                *data.description,
                "Labels are divided by the scaling parameter, and outputs multiplied by it.",
                "Time is in units of the fastest time constant of the linearised network.",
            ],
            "samples": self.samples,
            "network": f"{self.activation}, {self.hidden_layers} hidden layers of {self.width}",
            "scale": 1.0,
        }


def _named(alpha: float) -> str:
    return f"target / {alpha:.9g}"
