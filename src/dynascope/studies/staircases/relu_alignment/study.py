"""Neurons of a ReLU network turn to few directions before anything is learned."""

from __future__ import annotations

import functools
import math
from typing import Literal

import jax.numpy as jnp
import numpy as np
import xarray as xr

from dynascope.comparison import compare
from dynascope.networks import TwoLayer
from dynascope.observation import observe
from dynascope.prediction import predict
from dynascope.results import Chart, Comparison, Staircase, training_time
from dynascope.studies import Reference, StaircaseStudy, Values, curve_tolerance
from dynascope.studies.fields import choice, count, positive
from dynascope.studies.staircases.relu_alignment.page import FIGURES, MEANING
from dynascope.studies.staircases.relu_alignment.paths import AlignmentPaths
from dynascope.studies.tolerances import with_limits
from dynascope.tasks import Task
from dynascope.tasks.known_modes import relu_data
from dynascope.theory.relu_alignment import orthogonal_staircase

# Size of the largest neuron at the end of the alignment, and e-folds by which one may shrink meanwhile.
_LARGE = 1e-3
_SHRUNK = 3.0
_ROUNDING = 1e-12  # 1e-4 of it is that of the products of orthogonal inputs

_QUESTION = "When do the neurons of a ReLU network that starts near zero learn, and what is then left of the loss?"
_MEANING = (
    "A ReLU network with {parameters.width} neurons was trained on {parameters.data} data from weights of "
    "{parameters.scale}. Its neurons first turn to few directions, then those along one of them grow large and the "
    "loss falls at once. Theory puts the first jump at {predicted.jump_time:first} and the last at "
    "{predicted.jump_time:last}; in training they came at {residual.observed_jump_time:first} and "
    "{residual.observed_jump_time:last}. On orthogonal inputs this is one jump for the positive targets and one for "
    "the negative ones; on other data the neurons that have grown move on, and later times are estimates."
)


class ReluAlignment(StaircaseStudy):
    """Directions and growth of every neuron of a ReLU network, or the staircase that follows on orthogonal inputs.

    The network is f(x) = Σ aᵢ relu(wᵢ·x) with |aᵢ| = ‖wᵢ‖ at the start. On data in the plane the neurons are followed
    until the largest has reached a thousandth. Those that theory expects to shrink more than twentyfold on the way are
    left out: training keeps them balanced only up to the size of its steps, which comes to matter once they are small.
    """

    data: Literal["plane", "orthogonal", "general"] = choice(
        "plane",
        '"plane" for Gaussian inputs and targets in the plane; "orthogonal" for orthogonal inputs, as many as samples, '
        'with targets of both signs; "general" for Gaussian inputs in three dimensions and targets of two teacher '
        "neurons of opposite sign, where only alternating gradient flow can tell the staircase.",
    )
    samples: int = count(6, "Number of samples; with general data ten times as many.", least=2)
    width: int = count(60, "Number of neurons.")
    # Neurons must be aligned before they are large.
    scale: float = positive(
        1e-8,
        "Factor on the initial weights; with orthogonal data the slopes are measured between it and 1e-4 of it.",
        most=1e-4,
    )
    seed: int = count(10, "Seed of the data and of the initial weights.", least=0)

    reference = Reference.of(
        "H. Maennel, O. Bousquet, S. Gelly, Gradient descent quantizes ReLU network features (arXiv 1803.08367)",
        "From vanishing initialisation the neurons of a ReLU network turn, along exactly known paths, to a few "
        "directions that the data alone fix; with orthogonal inputs the loss then falls in one jump for each sign of "
        "the targets (arXiv 2206.00939).",
    )
    title = "Alignment of ReLU neurons"
    figures = FIGURES
    trains = "relu"
    symbols = {"neuron": ""}
    minutes = 0.2
    names = {
        "extremal_direction": ("extremal direction", "1"),
        "growth": ("logarithm of the growth of the neuron", "1"),
        "rate": ("rate of growth", "1"),
        "kind": ("kind of direction", "1"),
    }
    tiny = {"samples": 3, "width": 8, "scale": 1e-6}

    def observe(self) -> xr.Dataset:
        """Train: along the alignment by small steps of descent, through the jumps by gradient flow."""
        if self.data != "plane":
            return self.trained_from(self.scale)
        # An adaptive solver would shorten its steps without end where a neuron slides along a kink.
        options = {"steps": int(self._steps[-1]), "record_steps": self._steps, "learning_rate": self._learning_rate}
        run = observe(self._task, self._network, scale=self.scale, flow="descent", probes=[_alignment], **options).isel(
            neuron=self._judged
        )
        axes, sizes = run["size"].dims, run["size"].to_numpy()
        angles = self._paths.chosen(self._judged).angles(run["direction"].to_numpy())
        return run.assign(growth=(axes, np.log(sizes / sizes[0])), angle=(axes, angles)).drop_vars("size")

    def trained_from(self, scale: float) -> xr.Dataset:
        """Train through the jumps."""
        if self.data == "general":
            duration = training_time(self._alternation, scale)
        else:
            duration = 1.25 * float(self._staircase(scale).times[-1])
        # No neuron slides along a kink here, but all cross some, where the error of a step is of first order.
        return observe(self._task, self._network, scale=scale, duration=duration, save=2000, relative_tolerance=1e-6)

    def predict(self) -> xr.Dataset:
        """The exact path of each neuron under frozen residuals, or the staircase."""
        if self.data == "plane":
            return self._paths_predicted()
        if self.data == "general":
            return self._alternation
        staircase = self._staircase(self.scale)
        unseen = any("not learned" in each for each in staircase.warnings)
        problem = f"at scale {self.scale} the rounding of orthogonal inputs switches on data that no neuron sees"
        remedy = f"choose at least {_ROUNDING:g}, or more neurons"
        self.require(self.scale >= _ROUNDING or not unseen, "scale", remedy, problem=problem)
        offset = "times are known up to an offset, which was below 0.5 in random problems: 1/log(1/scale)"
        bent = "neurons that do not see all the data move the slopes by up to one percent"
        times, slopes = (1.0 / -math.log(self.scale), offset), (0.02, bent)
        return self.stated(staircase, "relu", jump_time=times, slope=slopes)

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Directions, growth and loss over time, or levels and times at one scale and slopes between two."""
        if self.data != "plane":
            return super().compare(observed, predicted)
        return compare(observed, predicted, attributes=self.attributes())

    def charts(self) -> tuple[Chart, ...]:
        """Directions in the plane, or the loss of a staircase."""
        return FIGURES if self.data == "plane" else StaircaseStudy.figures

    @property
    def meaning(self) -> str:
        """Of directions in the plane, or of a staircase."""
        return MEANING if self.data == "plane" else _MEANING

    @property
    def question(self) -> str:
        """Of directions in the plane, or of a staircase."""
        return (
            "Where do the neurons of a ReLU network turn before anything is learned?"
            if self.data == "plane"
            else _QUESTION
        )

    def labels(self) -> Values:
        """Times and neurons of the paths."""
        return {"time": self._steps * self._learning_rate, "neuron": self._judged}

    def _paths_predicted(self) -> xr.Dataset:
        times, paths = self.labels()["time"], self._paths.chosen(self._judged)
        directions, growths = paths.at(times)
        lag = "descent lags behind the flow by a share of its step"
        limits = curve_tolerance(
            loss=(1e-3, "the outputs stay below a thousandth of the targets"),
            direction=(2e-3, f"{lag}, and rattles about a kink"),
            angle=(2e-3, f"{lag}, and rattles about a kink"),
            growth=(5e-3, lag),
        )
        values = {
            "loss": np.full(len(times), self._task.target_power / 2),
            "direction": (("time", "neuron", "feature"), directions),
            "growth": (("time", "neuron"), growths),
            "angle": (("time", "neuron"), paths.angles(directions)),
            "extremal_direction": (("neuron", "feature"), [path.end for path in paths.paths]),
            **{name: ("neuron", [getattr(path, name) for path in paths.paths]) for name in ("kind", "rate")},
        }
        told = self.record(values, theory="early alignment of ReLU networks", reference=self.reference.paper)
        return with_limits(told, limits)

    def _staircase(self, scale: float) -> Staircase:
        task, (first, second) = self._task, map(np.asarray, (self._network.first, self._network.second))
        return orthogonal_staircase(task.inputs, task.targets, scale=scale, first=first, second=second)

    @functools.cached_property
    def _alternation(self) -> xr.Dataset:
        return predict(self._task, self._network, scale=self.scale, jumps=2, curve=False)

    @functools.cached_property
    def _task(self) -> Task:
        return relu_data(self.data, self.samples, self.seed)

    @functools.cached_property
    def _network(self) -> TwoLayer:
        network = TwoLayer(self._task.input_dimension, self.width, 1, activation="relu", seed=self.seed)
        balanced = np.linalg.norm(network.first, axis=0)[:, None] * np.sign(network.second)
        return network.with_neurons(np.hstack([network.first.T, balanced]))

    @functools.cached_property
    def _paths(self) -> AlignmentPaths:
        signs = np.sign(self._network.second[:, 0])
        return AlignmentPaths.of(self._task.inputs, self._task.targets, np.asarray(self._network.first), signs)

    @property
    def _learning_rate(self) -> float:
        """A small fraction of the shortest time in which a neuron can turn."""
        task = self._task
        return 5e-4 / float(np.mean(np.abs(task.targets[:, 0]) * np.linalg.norm(task.inputs, axis=1)))

    @functools.cached_property
    def _steps(self) -> np.ndarray:
        """Recorded steps, up to the time when the first neuron is large."""
        fastest = max(path.rate for path in self._paths.paths)
        problem, remedy = f"none of {self.width} neurons grows", "choose more neurons, or another seed"
        self.require(fastest > 0, "width", remedy, problem=problem)
        end = self._paths.time_to_grow(np.log(_LARGE / self.scale), -2 * np.log(self.scale) / fastest)
        return np.unique(np.linspace(0, end / self._learning_rate, 200).astype(int))

    @functools.cached_property
    def _judged(self) -> np.ndarray:
        """Neurons that do not shrink too much."""
        _, growths = self._paths.at(self._steps * self._learning_rate)
        return np.flatnonzero(growths.min(axis=0) > -_SHRUNK)


def _alignment(network: TwoLayer) -> Values:
    sizes = jnp.linalg.norm(network.first, axis=0)
    return {"direction": (("neuron", "feature"), (network.first / sizes).T), "size": (("neuron",), sizes)}
