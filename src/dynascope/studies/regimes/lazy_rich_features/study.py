"""Small targets make a network lazy: what its features and its function then approach, and how fast."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Literal

import jax
import numpy as np

from dynascope.comparison.effect import report_effects
from dynascope.networks import MLP
from dynascope.probes.features import kappa_cka
from dynascope.studies import Reference, Study, Values, curve_tolerance, exact
from dynascope.studies.fields import choice, count, numbers, positive, seed, text
from dynascope.studies.regimes.lazy_rich_features.claims import DISTANCE, FIGURES, LAST_LAYER, SMALLNESS
from dynascope.studies.regimes.lazy_rich_features.experiment import (
    Trained,
    distance,
    errors,
    expand,
    final_metrics,
    measures,
    train,
)
from dynascope.studies.regimes.lazy_rich_features.fastest_rate import fastest_rate
from dynascope.studies.regimes.lazy_rich_features.linear_descent import descended_outputs
from dynascope.studies.regimes.lazy_rich_features.page import MEANING
from dynascope.studies.regimes.lazy_rich_features.richness import richer_settings
from dynascope.studies.regimes.scalar_training import final_growth
from dynascope.tasks.data.labelled_images import LabelledImages, labelled_images
from dynascope.theory.scalar_networks.scalar import Setting, limit

_LINEARISED, _LAST_LAYER = "linearised", "last layer only"
_SMOOTH = ("tanh", "erf", "gelu")
_LAZIEST = 1e6
_STEP = 0.25  # of descent, in the fastest time constant
_SMALL = 0.02  # second order over the first, up to which errors of two orders and of one are what is said below
_TWO_ORDERS = (1e-3, "two orders of the expansion are known, and the next is smaller by the square of the downscaling")
_ONE_ORDER = (0.02, "one order of the expansion is known, and the next is smaller by the downscaling")
_SAME = (1e-6, "both follow the same linear recursion, by different code")
_EXACT = (1e-6, "the theory is exact for every step of descent")


class LazyRichFeatures(Study):
    """A network F = α (f − f₀), f₀ its start, learns labels y as f does those divided by α; large α make it lazy.

    Expanded in 1/α, F = F₁ + F₂/α + …, where F₁ is the network linearised in all its weights at the start, and not the
    one of which the last layer alone is trained. Both terms, and by how much the features of the last layer move, are
    found without training and compared with networks that were trained at lazy α: losses, test errors, the distance to
    the linearised network times α (`correction`), the movement of the features times α (`feature_movement`), and their
    distance κ_CKA to a minimum (`lazy_kappa_cka`). On these the verdict is. That networks which are linear in what they
    train, the linearised network and the last layer trained alone, follow their recursions is checked.

    Reported for all α, as hypotheses with 95 % intervals over initialisations, is what happens to features on the way
    from rich to lazy: κ_CKA, effective dimensions, similarity to those of the start, test error, and the nearer limit.

    In a network of one input and many linear neurons richness is one number, the final growth of the weights ln γ₊
    (`final_log_growth`). It is known exactly, and checked for a start of weights ±1, with √factor times smaller
    weights, a factor times larger targets or smaller outputs, which are all as rich, and widened with outputs over
    √width, which is lazier the wider it is.
    """

    data: str = text("digits", '"digits", or the path of labelled images.')
    samples: int = count(200, "Number of training images.", least=2)
    test_samples: int = count(500, "Largest number of test images.", least=2)
    width: int = count(32, "Number of neurons in each hidden layer.")
    hidden_layers: int = count(3, "Number of hidden layers.")
    activation: Literal["tanh", "erf", "gelu"] = choice(
        "tanh", '"tanh", "erf" or "gelu", smooth as the expansion needs.'
    )
    rich: list[float] = numbers(
        [1.0, 3.0, 10.0, 30.0, 100.0], "Factors α that are measured.", fewest=0, increasing=True, above=0.0
    )
    lazy: list[float] = numbers(
        [300.0, 3000.0],
        "Larger factors α, at most 1e6, beyond which f − f₀ is lost in rounding, that are also compared with theory.",
        increasing=True,
        above=0.0,
        most=_LAZIEST,
    )
    duration: float = positive(
        2000.0, "Time of training in units of the fastest time constant of the linearised network."
    )
    times: int = count(50, "Number of times at which both are recorded, at equal ratios.", least=2)
    seeds: int = count(4, "Number of initialisations, from which runs are told from chance.", least=2)
    factor: float = positive(10.0, "By how much the scalar network is made richer.")
    scalar_neurons: int = count(4, "Its number of neurons, even.")
    scalar_target: float = positive(3.0, "Slope S > 0 that it learns.")
    seed: int = seed("Seed of the data, and of the first initialisation.")

    reference = Reference.of(
        "Y. Nam, Layerwise dynamics and inductive bias (DPhil thesis, chapter 6); L. Chizat, E. Oyallon, F. Bach, On "
        "Lazy Training in Differentiable Programming (arXiv 1812.07956)",
        "With small targets a network learns as its linearisation does and keeps its features, up to corrections in "
        "proportion to the targets that are known from the start.",
    )
    theory = "expansion in small targets"
    told = (
        "Labels are divided by the scaling parameter, and outputs multiplied by it.",
        "The fastest time constant is that of the linearised network.",
    )
    trains = "{activation}, {hidden_layers} hidden layers of {width}"
    flow = "gradient descent, in steps of a quarter of the fastest time constant"
    names = {
        "time": ("training time, in fastest time constants", "1"),
        "final_test_error": ("test error at the end of training", "1"),
        "linearised_test_error": ("test error of the linearised network", "1"),
        "last_layer_test_error": ("test error of the last layer alone", "1"),
        "final_log_growth": ("growth of the weights at the end (its logarithm)", "1"),
        "feature_movement": ("movement of the features", "1"),
        "feature_similarity": ("similarity of the features to their start", "1"),
        "distance_to_linearised": ("distance to the linearised network", "1"),
        "distance_to_last_layer": ("distance to training the last layer alone", "1"),
        "correction": ("correction to lazy learning", "1"),
        "lazy_kappa_cka": ("distance of lazy features to minimum features κ", "1"),
    }
    axes = ("seed", "scaling_parameter", "time")
    labelled = {
        **{"scaling_parameter": "lazy", "dial": lambda study: list(study._scalars)},
        **{"seed": lambda study: study.seed + np.arange(study.seeds), "time": lambda study: _STEP * study._steps},
    }
    along = ("time", "scaling_parameter", "dial")
    title = "Features on the way from rich to lazy"
    question = "What becomes of the features of a network that is trained on ever smaller targets?"
    figures = FIGURES
    meaning = MEANING
    minutes = 1.5
    tolerance = curve_tolerance(
        **dict.fromkeys(("loss", "test_error", "lazy_kappa_cka"), _TWO_ORDERS),
        correction=_ONE_ORDER,
        feature_movement=_ONE_ORDER,
        linearised_test_error=_SAME,
        last_layer_test_error=_EXACT,
        final_log_growth=(1e-6, "the theory is exact, and training ends thirty time constants later"),
    )
    checks = tuple(exact("linearised_test_error", "last_layer_test_error", "final_log_growth"))
    tiny = {
        **{"samples": 40, "test_samples": 50, "width": 12, "hidden_layers": 1},
        **{"rich": [3.0], "lazy": [300.0], "duration": 20.0, "times": 10},
    }

    def trained(self) -> Values:
        """Train the networks at every α, their linearisations and their last layers, and the scalar networks."""
        runs = {_named(alpha): self._run("all layers", alpha) for alpha in self._alphas}
        runs |= {kind: self._run(kind, 1.0) for kind in (_LINEARISED, _LAST_LAYER)}
        linear, last = (runs[kind].outputs for kind in (_LINEARISED, _LAST_LAYER))
        lazy = {alpha: runs[_named(alpha)] for alpha in self.lazy}
        limits, start = {"linearised": linear, "last_layer": last}, (self._start_features, self._labels, self.samples)
        measured = {name: final_metrics(run, limits, *start) for name, run in runs.items()}
        kappa = [measured[_named(alpha)]["kappa_cka"] for alpha in self.lazy]
        return {
            **self._compared(
                np.stack([run.outputs for run in lazy.values()], axis=1),
                np.stack([alpha * distance(run.outputs, linear, self.samples) for alpha, run in lazy.items()], axis=1),
                np.stack([alpha * run.movement for alpha, run in lazy.items()], axis=1),
                (linear, last),
                np.transpose(kappa),
            ),
            "final_log_growth": ("dial", final_growth(self._scalars.values())),
            **{
                name: (("run", "seed"), np.array([each[name] for each in measured.values()]))
                for name in measured[_LINEARISED]
            },
            **self._reported(measured),
            "run": ("run", list(runs)),
        }

    def exact(self) -> Values:
        """Two orders of the expansion at every lazy α, the last layer as a linear model, and the scalar network."""
        inputs, targets, others = self._split
        found = expand(self._networks, inputs, targets, others, self._steps, learning_rate=self._rate)
        # The third order, which is not known, is small: smaller than the second as the second than the first.
        first, second = (np.linalg.norm(each[:, 1:], axis=(-2, -1)) for each in (found.first, found.second))
        least = float(np.max(second / first)) / _SMALL
        problem = f"at the first of lazy, {self.lazy[0]:g}, the second order is not small"
        self.require(self.lazy[0] >= least, "lazy", f"choose factors of {least:.0f} or more", problem=problem)
        outputs = np.stack([found.first + found.second / alpha for alpha in self.lazy], axis=1)
        features = np.stack([found.start + found.change / alpha for alpha in self.lazy], axis=1)
        kappa = [
            [float(kappa_cka(h, f[-1, : self.samples])) for h, f in zip(*each, strict=True)]
            for each in zip(features, outputs, strict=True)
        ]
        last = [descended_outputs(h, targets, self._steps, self._rate) for h in self._start_features]
        same = np.ones((1, len(self.lazy), 1))
        correction, movement = (
            each[:, None] * same for each in (distance(found.second, 0, self.samples), found.movement)
        )
        scalars = Setting(*map(np.stack, zip(*self._scalars.values(), strict=True)))
        return {
            **self._compared(outputs, correction, movement, (found.first, np.stack(last)), kappa),
            "final_log_growth": ("dial", limit(scalars).log_growth),
        }

    def check(self) -> None:
        """More factors than one, in order, more steps than times, and a scalar network that starts at zero."""
        increasing = len(self._alphas) >= 2 and bool(np.all(np.diff(self._alphas) > 0))
        self.require(increasing, "lazy", "give larger factors than the rich ones, and two or more in all")
        few = self.times <= round(self.duration / _STEP)
        self.require(few, "times", "choose fewer times, or a longer duration", beside="duration")
        even = self.scalar_neurons % 2 == 0
        self.require(even, "scalar_neurons", "choose an even number, so that the network starts at zero")

    def _compared(
        self, outputs: np.ndarray, correction: np.ndarray, movement: np.ndarray, limits: Any, kappa: Any
    ) -> dict[str, Any]:
        """What both sides hold of outputs (seeds, lazy, times, m, c) and of those of the two limits."""
        loss, error = errors(outputs, self._labels, self.samples)
        linearised, last = (errors(each, self._labels, self.samples)[1] for each in limits)
        return {
            "loss": loss,
            "test_error": error,
            "correction": correction,
            "feature_movement": movement,
            "linearised_test_error": (("seed", "time"), linearised),
            "last_layer_test_error": (("seed", "time"), last),
            "lazy_kappa_cka": (("seed", "scaling_parameter"), kappa),
        }

    def _run(self, kind: str, divisor: float) -> Trained:
        inputs, targets, _ = self._split
        numbers = {"divisor": divisor, "learning_rate": self._rate}
        return train(self._networks, kind, inputs, targets, self._steps, self._statistics, **numbers)

    def _reported(self, measured: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """What the runs say of the hypotheses on features."""
        scaled = [measured[_named(alpha)] for alpha in self._alphas]
        levels = {claim: [each[claim.metric] for each in scaled] for claim in SMALLNESS}
        levels[LAST_LAYER] = [each["kappa_cka"] for each in (scaled[-1], measured[_LAST_LAYER])]
        levels[DISTANCE] = [scaled[-1][f"distance_to_{which}"] for which in ("linearised", "last_layer")]
        effects = [claim.compare(each) for claim, each in levels.items()]
        return {**report_effects(list(levels), effects), "hypothesis": ("hypothesis", [each.name for each in levels])}

    @functools.cached_property
    def _scalars(self) -> dict[str, Setting]:
        return richer_settings(self.scalar_neurons, self.scalar_target, self.factor)

    @property
    def _alphas(self) -> list[float]:
        return [*self.rich, *self.lazy]

    @functools.cached_property
    def _task(self) -> LabelledImages:
        data = labelled_images(self.data, self.samples, self.test_samples, self.seed)
        problem = f"samples is {self.samples}, and there are {data.classes} classes"
        self.require(self.samples > data.classes, "samples", f"choose more than {data.classes}", problem=problem)
        # Outputs of fewer neurons leave dimensions empty, which what the expansion leaves out would fill.
        enough, narrow = 2 * self.width + 1 >= data.classes, f"choose {data.classes // 2} or more"
        self.require(enough, "width", narrow, problem=f"{self.width} neurons are few for {data.classes} classes")
        return data

    @functools.cached_property
    def _labels(self) -> np.ndarray:
        """One column for each class, for the training images and then for the others."""
        return np.eye(self._task.classes)[np.concatenate([self._task.labels, self._task.test_labels])]

    @functools.cached_property
    def _split(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Training images, their targets, and the other images."""
        images = (self._task.inputs, self._task.test_inputs)
        inputs, others = (each.reshape(len(each), -1).astype(np.float64) for each in images)
        return inputs, self._labels[: self.samples], others

    @functools.cached_property
    def _networks(self) -> list[MLP]:
        widths = (self._split[0].shape[1], *[self.width] * self.hidden_layers, self._task.classes)
        return [MLP(widths, activation=self.activation, seed=self.seed + k) for k in range(self.seeds)]

    @functools.cached_property
    def _statistics(self) -> dict[str, Any]:
        return measures(self._split[0], self._split[2])

    @functools.cached_property
    def _start_features(self) -> np.ndarray:
        """Features of all images at the start, shape (seeds, m, p)."""
        points = np.concatenate([self._split[0], self._split[2]])
        with jax.enable_x64(True):
            return np.stack([np.asarray(network.features(points)) for network in self._networks])

    @functools.cached_property
    def _rate(self) -> float:
        """The learning rate, a fraction of the fastest time constant of the first network's linearisation."""
        return _STEP / fastest_rate(self._networks[0], self._split[0])

    @functools.cached_property
    def _steps(self) -> np.ndarray:
        last = round(self.duration / _STEP)
        return np.unique(np.append(0, np.geomspace(1, last, self.times).round().astype(int)))


def _named(alpha: float) -> str:
    return f"target / {alpha:.9g}"
