"""Training and exact solution of linear neurons with the same initial function and different layer imbalances."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from dynascope.comparison import Claim, report_claims
from dynascope.flows import GradientFlow
from dynascope.flows.solvers.solver import Solver
from dynascope.networks import TwoLayer
from dynascope.prediction.observation import observe
from dynascope.probes.kernel.path import layer_kernel_path
from dynascope.results.numbers import counted
from dynascope.studies.linear_networks.single_neuron.plane import in_plane
from dynascope.tasks import Task
from dynascope.tasks.known_modes import neuron_regression, unit_maps
from dynascope.tasks.random_maps import orthonormal
from dynascope.theory import LayerRates, neuron
from dynascope.theory.neuron.regimes import regime_along
from dynascope.theory.neuron.state import weights_of

if TYPE_CHECKING:
    from dynascope.studies.linear_networks.single_neuron.study import SingleNeuron

__all__ = ["Experiment", "trained_together"]

_LEARNED = 1e-13  # loss relative to the initial loss at which training ends: the map is then within 1e-6 of its limit
_NEURON = ("imbalance",)
_CURVE = ("imbalance", "time")
_VECTOR = ("imbalance", "time", "feature")


class Experiment:
    """Trains the neurons f(x) = a wᵀx of a study, and evaluates their exact solution.

    Attributes:
        study: The study, whose fields are the settings.
        rates: Learning rates of both layers.
        imbalances: δ of each neuron; the requested imbalance comes first.
    """

    def __init__(self, study: SingleNeuron):
        self.study = study
        self.rates = LayerRates(first=study.weight_rate, second=study.output_rate)
        imbalance = float(study.imbalance)
        self.imbalances = np.array(list(dict.fromkeys((imbalance, 0.0, -imbalance))))

    @functools.cached_property
    def directions(self) -> np.ndarray:
        """Orthonormal directions of input variation, shape (d, rank)."""
        dimension = self.study.dimension
        if self.study.inputs == "whitened":
            return np.eye(dimension)
        return orthonormal(np.random.default_rng([self.study.seed, 1]), dimension, dimension - 1)

    @functools.cached_property
    def maps(self) -> tuple[np.ndarray, np.ndarray]:
        """The initial map β = a w and the target map, shape (d,) each."""
        start, target = unit_maps(self.directions, self.study.alignment, self.study.seed)
        return self.study.initial_strength * start, target

    @functools.cached_property
    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """Initial weights a (neurons,) and w (neurons, d); all neurons have the same map."""
        return weights_of(self.maps[0], self.imbalances, rates=self.rates)

    @functools.cached_property
    def task(self) -> Task:
        """Regression on the target map."""
        least = 1.0 if self.study.inputs == "whitened" else 0.5
        options = {"samples": self.study.samples, "least_variance": least, "seed": self.study.seed}
        return neuron_regression(self.maps[1], self.directions, **options)

    @functools.cached_property
    def times(self) -> np.ndarray:
        """Log-spaced times until all neurons have learned."""
        # Near the target, of norm one, no direction is slower than (R − |δ|)/2 times its variance, which is ½ or 1.
        product, size = self.study.output_rate * self.study.weight_rate, abs(self.study.imbalance)
        slowest = 2 * product / (np.hypot(size, 2 * np.sqrt(product)) + size)
        guesses = np.append(0.0, np.geomspace(1, 100, self.study.times - 1) / slowest)
        loss = self.solution(guesses)["loss"]
        learned = np.all(loss <= _LEARNED * loss[:, :1], axis=0)
        self.study.require(
            learned.any(),
            "initial_strength",
            "choose a larger value, or a larger alignment",
            problem=f"with initial_strength {self.study.initial_strength}, the neuron does not learn within 100 time "
            "constants",
        )
        last = guesses[np.argmax(learned)]
        return np.append(0.0, np.geomspace(1e-4 * last, last, self.study.times - 1))

    def trained(self) -> xr.Dataset:
        """Train all neurons by gradient flow and record weights, functions, NTK changes and regimes."""
        return self.measured(self.flow(self.networks(), self.times))

    def networks(self) -> list[TwoLayer]:
        """The neurons before training."""
        frame = TwoLayer(self.study.dimension, 1, 1)
        return [frame.with_neurons(np.append(w, a)[None]) for a, w in zip(*self.start, strict=True)]

    def flow(self, networks: list[TwoLayer], times: np.ndarray) -> xr.Dataset:
        """Train neurons on the task by gradient flow, and record their weights."""
        rates = {"first": self.study.weight_rate, "second": self.study.output_rate}
        solver = Solver(relative_tolerance=1e-9, absolute_tolerance=1e-12)
        method = GradientFlow(duration=times[-1], save=times, learning_rate=rates, solver=solver)
        return observe(self.task, networks, method=method, probes=[_weights]).record

    def measured(self, run: xr.Dataset) -> xr.Dataset:
        """Add functions, NTK changes and regimes to the record of the weights."""
        a, w = run["output_weight"].to_numpy()[..., None], run["weights"].to_numpy()
        # The NTK on the samples is X M Xᵀ, with M of shape (d, d).
        layers = self.study.weight_rate * a[..., None] ** 2 * np.eye(self.study.dimension)
        layers += self.study.output_rate * w[..., :, None] * w[..., None, :]
        motion = self.kernel_motion(layers)
        regimes = self.regimes_along(a * w, motion["kernel_change"])
        right, neurons = int(np.sum(regimes == self.predicted_regimes)), len(regimes)
        statement = (
            f"{'All ' + counted(neurons) + ' neurons learn' if neurons > 1 else 'The neuron learns'} in the regime "
            "that the theory predicts from the initial weights; the value is the number of neurons in the predicted "
            "regime."
        )
        values = {
            "coefficients": (_VECTOR, a * w),
            "interpolator": (("imbalance", "feature"), a[:, -1] * w[:, -1]),
            **motion,
            **self.coordinates(a[..., 0], a * w),
            "regime": (_NEURON, regimes),
            **report_claims([Claim("regimes", statement, right, least=neurons)]),
        }
        return self.study.run_record(run, values, members="imbalance")

    def exact(self) -> dict[str, Any]:
        """Evaluate the exact trajectory and, without training, its final map."""
        end = neuron.interpolator(self.task.inputs, self.task.targets, *self.start, rates=self.rates)
        return {
            **{name: (_VECTOR[: values.ndim], values) for name, values in self.solution(self.times).items()},
            "interpolator": (("imbalance", "feature"), end.coefficients),
            "regime": (_NEURON, self.predicted_regimes),
        }

    @functools.cached_property
    def predicted_regimes(self) -> np.ndarray:
        """The regime of each neuron, from its initial weights if inputs are whitened, otherwise from its trajectory."""
        if self.study.inputs == "whitened":
            return neuron.regime(*self.start, self.maps[1], rates=self.rates).regime
        path = self.solution(self.times)
        return self.regimes_along(path["coefficients"], path["kernel_change"])

    def solution(self, times: np.ndarray) -> dict[str, np.ndarray]:
        """The exact trajectory: a closed form for whitened inputs, and otherwise the flow in function space."""
        (a, w), imbalances = self.start, self.imbalances
        if self.study.inputs == "whitened":
            run = neuron.neuron_trajectory(a, w, self.maps[1], times, rates=self.rates)
            path = {"output_weight": run.output_weight, "weights": run.weights, "loss": run.excess_loss}
        else:
            start = self.task.inputs, self.task.targets, a[:, None] * w, imbalances
            run = neuron.function_space_flow(times, *start, rates=self.rates)
            size, _ = weights_of(np.asarray(run.coefficients), imbalances[:, None], rates=self.rates)
            path = {"output_weight": np.where(run.reversed, -size, size), "loss": run.loss}
        layers = np.asarray(neuron.preconditioner(run.coefficients, imbalances[:, None], rates=self.rates))
        path |= {"coefficients": run.coefficients, **self.kernel_motion(layers)}
        path |= self.coordinates(np.asarray(path["output_weight"]), np.asarray(run.coefficients))
        return {name: np.asarray(values) for name, values in path.items()}

    def coordinates(self, a: np.ndarray, coefficients: np.ndarray) -> dict[str, np.ndarray]:
        """Coordinates of the neurons in the plane of the initial map and the target."""
        along, across = in_plane(coefficients, *self.maps)
        named = {"coefficient_along_target": along, "coefficient_across_target": across}
        return {"weight_along_target": along / a, **named}

    def kernel_motion(self, layers: np.ndarray) -> dict[str, np.ndarray]:
        """Rotation and relative change of the NTK X M Xᵀ since initialisation, for a trajectory of M."""
        path = layer_kernel_path(layers, self.task.input_moment)
        return {"kernel_distance": path.distance, "kernel_change": path.change}

    def regimes_along(self, coefficients: np.ndarray, kernel_change: np.ndarray) -> np.ndarray:
        """Classify trajectories into regimes."""
        rate = float(np.sqrt(self.study.output_rate * self.study.weight_rate))
        return regime_along(self.times, coefficients, kernel_change, self.imbalances, self.maps[1], rate=rate)


def trained_together(experiments: Sequence[Experiment]) -> list[xr.Dataset]:
    """Train the neurons of experiments with the same task as one ensemble, recorded at the times of all of them."""
    first, networks = experiments[0], [each.networks() for each in experiments]
    times = np.unique(np.concatenate([each.times for each in experiments]))
    run = first.flow([network for part in networks for network in part], times)
    ends = np.cumsum([len(part) for part in networks])
    records = []
    for each, part, end in zip(experiments, networks, ends, strict=True):
        members = run.isel(seed=slice(end - len(part), end), time=np.searchsorted(times, each.times))
        records.append(each.measured(members.assign_coords(seed=np.arange(len(part)))))
    return records


def _weights(network: TwoLayer) -> dict[str, tuple[tuple[str, ...], Any]]:
    return {"output_weight": ((), network.second[0, 0]), "weights": (("feature",), network.first[:, 0])}
