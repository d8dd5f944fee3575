"""A single linear neuron is lazy, rich or delayed rich by the imbalance of its two layers."""

from __future__ import annotations

import functools
from typing import Any, Literal

import numpy as np
import xarray as xr

from dynascope.comparison import Claim, report_claims
from dynascope.networks import TwoLayer
from dynascope.probes.kernel.path import layer_kernel_path
from dynascope.studies import Reference, Study, Values, exact
from dynascope.studies.fields import choice, count, number, positive, seed
from dynascope.studies.linear_networks.single_neuron import page
from dynascope.studies.linear_networks.single_neuron.plane import in_plane
from dynascope.tasks import Task
from dynascope.tasks.known_modes import neuron_regression, unit_maps
from dynascope.tasks.random_maps import orthonormal
from dynascope.theory import neuron, papers
from dynascope.theory.neuron.regimes import regime_along
from dynascope.theory.neuron.state import weights_of

_LEARNED = 1e-13  # loss over the initial loss at which training ends: the map is then within 1e-6 of its limit


class SingleNeuron(Study):
    """Weights, function and tangent kernel of f(x) = a wᵀx over time, from one initial function, for three imbalances.

    Judged are weights, function and kernel, and for how many of the three the regime that training shows (lazy, rich or
    delayed rich) is the one that theory says from the start.
    """

    imbalance: float = number(
        -4.0, "δ = weight_rate · a² − output_rate · ‖w‖², conserved in training; shown beside 0 and −δ."
    )
    initial_strength: float = positive(0.1, "‖β‖ of the initial function β = a w; that of the target is 1.")
    alignment: float = number(
        0.2,
        "Cosine of the angle between the initial function and the target, above −1, from where a balanced neuron would "
        "end in the saddle.",
        above=-1.0,
        most=1.0,
    )
    output_rate: float = positive(1.0, "Learning rate η_a of the output weight.")
    weight_rate: float = positive(1.0, "Learning rate η_w of the input weights.")
    inputs: Literal["whitened", "low-rank"] = choice(
        "whitened",
        '"whitened", where the weights are known in closed form, or "low-rank", where one direction is never seen and '
        "the variances of the others fall from 1 to ½, and the function alone follows an equation.",
    )
    dimension: int = count(2, "Number of inputs, at least two.", least=2)
    samples: int = count(
        20,
        "Number of samples, at least the dimension; the inputs are transformed so that their moments are exact.",
        least="dimension",
    )
    times: int = count(300, "Number of times at which both are recorded.", least=10)
    seed: int = seed("Seed of the inputs and of the directions of the target and the start.")

    reference = Reference.of(
        papers.UNBALANCED,
        "The imbalance of its two layers alone makes a linear neuron learn lazily, richly or richly after a "
        "delay, along an exact path, to a map that is known without training.",
    )
    along = ("time", "feature")
    planes = (("output_weight", "weight_along_target"), ("coefficient_along_target", "coefficient_across_target"))
    title = "A single neuron, lazy or rich"
    question = "Three neurons start with the same function. Why do they take different paths to the same target?"
    figures, meaning = page.figures, page.meaning
    minutes = 0.2
    symbols = {"imbalance": "δ"}
    theory = "exact single linear neuron"
    trains = "single linear neuron"
    axes = ("imbalance", "time")
    labelled = {"imbalance": "_imbalances", "feature": "_task.feature_names"}
    names = {
        "coefficient_along_target": ("coefficient along the target", "1"),
        "coefficient_across_target": ("coefficient across the target", "1"),
        "weight_along_target": ("input weight along the target", "1"),
        "output_weight": ("output weight", "1"),
        "interpolator": ("map at the end of training", "1"),
    }
    tolerance = {
        **exact(
            *("loss", "output_weight", "weights", "weight_along_target", "coefficients"),
            *("coefficient_along_target", "coefficient_across_target", "kernel_distance", "kernel_change"),
            reason="the theory is exact, and the solvers keep each step within 1e-9",
        ),
        **exact("interpolator", error=1e-5, reason="training stops when the map is within about 1e-6 of its limit"),
    }
    judged_claims = ("regimes",)
    tiny = {"imbalance": 1.0, "samples": 4, "times": 40}

    def trained(self) -> xr.Dataset:
        """Train all three by gradient flow on the weights, and take their kernels on the samples."""
        rates = {"first": self.weight_rate, "second": self.output_rate}
        accuracy = {"relative_tolerance": 1e-9, "absolute_tolerance": 1e-12}
        frame, (a, w) = TwoLayer(self.dimension, 1, 1), self._start()
        networks = [frame.with_neurons(np.append(*each)[None]) for each in zip(w, a, strict=True)]
        run = self.followed(networks, _weights, learning_rate=rates, **accuracy)
        a, w = run["output_weight"].to_numpy()[..., None], run["weights"].to_numpy()
        layers = self.weight_rate * a[..., None] ** 2 * np.eye(self.dimension)
        layers += self.output_rate * w[..., :, None] * w[..., None, :]
        motion = self._kernel_motion(layers)
        regimes, told = self._seen(a * w, motion["kernel_change"]), self._regimes(self._path(self._times))
        statement = "Every neuron learns in the regime that theory says from its start."
        values = {
            "coefficients": ((*self.axes, "feature"), a * w),
            "interpolator": (("imbalance", "feature"), a[:, -1] * w[:, -1]),
            **motion,
            **self._coordinates(a[..., 0], a * w),
            "regime": ("imbalance", regimes),
            **report_claims([Claim("regimes", statement, int(np.sum(regimes == told)), least=len(told))]),
        }
        return self.run_record(run, values, members="imbalance")

    def exact(self) -> Values:
        """The closed form for whitened inputs, else the flow of the function; and the limit without training."""
        axes = (*self.axes, "feature")
        path = self._path(self._times)
        end = neuron.interpolator(self._task.inputs, self._task.targets, *self._start(), **self._rates)
        return {
            **{name: (axes[: values.ndim], values) for name, values in path.items()},
            "interpolator": (("imbalance", "feature"), end.coefficients),
            "regime": ("imbalance", self._regimes(path)),
        }

    def said(self) -> Values:
        """The regime of the imbalance that is asked for."""
        return {"regime": str(self._regimes(self._path(self._times))[0])}

    def _path(self, times: np.ndarray) -> dict[str, np.ndarray]:
        """What theory says of the neurons at some times, by the name that it has in the record."""
        (a, w), task, imbalances = self._start(), self._task, self._imbalances
        if self.inputs == "whitened":
            run = neuron.trajectory(a, w, self._maps[1], times, **self._rates)
            path = {"output_weight": run.output_weight, "weights": run.weights, "loss": run.excess_loss}
        else:
            start = task.inputs, task.targets, a[:, None] * w, imbalances
            run = neuron.function_space_flow(times, *start, **self._rates)
            size, _ = weights_of(np.asarray(run.coefficients), imbalances[:, None], **self._rates)
            path = {"output_weight": np.where(run.reversed, -size, size), "loss": run.loss}
        layers = np.asarray(neuron.preconditioner(run.coefficients, imbalances[:, None], **self._rates))
        path |= {"coefficients": run.coefficients, **self._kernel_motion(layers)}
        path |= self._coordinates(np.asarray(path["output_weight"]), np.asarray(run.coefficients))
        return {name: np.asarray(values) for name, values in path.items()}

    def _coordinates(self, a: np.ndarray, coefficients: np.ndarray) -> dict[str, np.ndarray]:
        """Where the neurons are in the plane of their start and their target."""
        along, across = in_plane(coefficients, *self._maps)
        named = {"coefficient_along_target": along, "coefficient_across_target": across}
        return {"weight_along_target": along / a, **named}

    def _regimes(self, path: dict[str, np.ndarray]) -> np.ndarray:
        """The regimes from the start alone where these are known, else along the path."""
        if self.inputs == "whitened":
            return neuron.regime(*self._start(), self._maps[1], **self._rates).regime
        return self._seen(path["coefficients"], path["kernel_change"])

    def _seen(self, coefficients: np.ndarray, kernel_change: np.ndarray) -> np.ndarray:
        """The regimes that paths show."""
        path = self._times, coefficients, kernel_change, self._imbalances, self._maps[1]
        return regime_along(*path, rate=float(np.sqrt(self.output_rate * self.weight_rate)))

    def _kernel_motion(self, layers: np.ndarray) -> dict[str, np.ndarray]:
        """How far the tangent kernel X M Xᵀ has turned and moved since the start, S and ρ, for M over time."""
        path = layer_kernel_path(layers, self._task.input_moment)
        return {"kernel_distance": path.distance, "kernel_change": path.change}

    def _start(self) -> tuple[np.ndarray, np.ndarray]:
        """The weights a (members,) and w (members, d), all with the same map."""
        return weights_of(self._maps[0], self._imbalances, **self._rates)

    @property
    def _rates(self) -> dict[str, float]:
        return {"output_rate": self.output_rate, "weight_rate": self.weight_rate}

    @property
    def _imbalances(self) -> np.ndarray:
        """The one that is asked for first."""
        return np.array(list(dict.fromkeys((float(self.imbalance), 0.0, -float(self.imbalance)))))

    @functools.cached_property
    def _maps(self) -> tuple[np.ndarray, np.ndarray]:
        """The maps at the start and of the target, (d,) each."""
        start, target = unit_maps(self._axes, self.alignment, self.seed)
        return self.initial_strength * start, target

    @functools.cached_property
    def _axes(self) -> np.ndarray:
        """The directions in which the inputs vary, (d, rank)."""
        line = np.random.default_rng([self.seed, 1]), self.dimension, self.dimension - 1
        return np.eye(self.dimension) if self.inputs == "whitened" else orthonormal(*line)

    @functools.cached_property
    def _task(self) -> Task:
        least = 1.0 if self.inputs == "whitened" else 0.5
        asked = {"samples": self.samples, "least_variance": least, "seed": self.seed}
        return neuron_regression(self._maps[1], self._axes, **asked)

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Until the last of the three has learned, closer at the start."""
        # Near the target, of length one, no direction is slower than (R − |δ|)/2 times its variance, which is ½ or 1.
        product, size = self.output_rate * self.weight_rate, abs(self.imbalance)
        slowest = 2 * product / (np.hypot(size, 2 * np.sqrt(product)) + size)
        guesses = np.append(0.0, np.geomspace(1, 100, self.times - 1) / slowest)
        loss = self._path(guesses)["loss"]
        learned = np.all(loss <= _LEARNED * loss[:, :1], axis=0)
        problem = f"from initial_strength {self.initial_strength} the neuron does not learn in a hundred time constants"
        remedy = "choose a larger one, or a larger alignment"
        self.require(learned.any(), "initial_strength", remedy, problem=problem)
        last = guesses[np.argmax(learned)]
        return np.append(0.0, np.geomspace(1e-4 * last, last, self.times - 1))


def _weights(network: TwoLayer) -> dict[str, tuple[tuple[str, ...], Any]]:
    return {"output_weight": ((), network.second[0, 0]), "weights": (("feature",), network.first[:, 0])}
