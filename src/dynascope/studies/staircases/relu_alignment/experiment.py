"""Training of a small ReLU network, and the predicted paths of its neurons."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
import xarray as xr

from dynascope.flows.gradient_flow import GradientFlow
from dynascope.flows.solvers.solver import Solver
from dynascope.networks import TwoLayer
from dynascope.prediction import predict
from dynascope.prediction.observation import observe
from dynascope.results import Staircase, training_time
from dynascope.studies.staircases.relu_alignment.paths import AlignmentPaths
from dynascope.tasks import Task
from dynascope.tasks.known_modes import relu_data
from dynascope.theory.relu_alignment import orthogonal_staircase
from dynascope.training.descend import Descent
from dynascope.validation import require

if TYPE_CHECKING:
    from dynascope.studies import Values
    from dynascope.studies.staircases.relu_alignment.study import ReluAlignment

__all__ = ["Experiment"]

_LARGE = 1e-3  # norm of the largest neuron at the end of the alignment
_SHRUNK = 3.0  # e-folds; neurons that shrink more are excluded from the comparison


class Experiment:
    """The balanced ReLU network of a study, its training, and its theory.

    Args:
        study: The study, whose fields set the data and the initial weights.
    """

    def __init__(self, study: ReluAlignment):
        self.study = study

    @functools.cached_property
    def task(self) -> Task:
        """The data."""
        return relu_data(self.study.data, self.study.samples, self.study.seed)

    @functools.cached_property
    def network(self) -> TwoLayer:
        """The network at unit scale, with |aᵢ| = ‖wᵢ‖."""
        study = self.study
        network = TwoLayer(self.task.input_dimension, study.width, 1, activation="relu", seed=study.seed)
        balanced = np.linalg.norm(network.first, axis=0)[:, None] * np.sign(network.second)
        return network.with_neurons(np.hstack([network.first.T, balanced]))

    @functools.cached_property
    def paths(self) -> AlignmentPaths:
        """The predicted path of each neuron under constant residuals."""
        signs = np.sign(self.network.second[:, 0])
        return AlignmentPaths.of(self.task.inputs, self.task.targets, np.asarray(self.network.first), signs)

    @property
    def learning_rate(self) -> float:
        """A small fraction of the shortest time scale on which a neuron can turn."""
        task = self.task
        return 5e-4 / float(np.mean(np.abs(task.targets[:, 0]) * np.linalg.norm(task.inputs, axis=1)))

    @functools.cached_property
    def steps(self) -> np.ndarray:
        """The recorded steps, up to the time at which the first neuron is large."""
        scale, width = self.study.scale, self.study.width
        fastest = max(path.rate for path in self.paths.paths)
        problem, remedy = f"none of the {width} neurons grows", "choose more neurons, or another seed"
        require(fastest > 0, problem, argument="width", value=width, remedy=remedy)
        end = self.paths.time_to_grow(np.log(_LARGE / scale), -2 * np.log(scale) / fastest)
        return np.unique(np.linspace(0, end / self.learning_rate, 200).astype(int))

    @property
    def times(self) -> np.ndarray:
        """The times of the recorded steps."""
        return self.steps * self.learning_rate

    @functools.cached_property
    def compared(self) -> np.ndarray:
        """The indices of all neurons except those that theory predicts to shrink too far."""
        _, growths = self.paths.at(self.times)
        return np.flatnonzero(growths.min(axis=0) > -_SHRUNK)

    def trained_to_align(self) -> xr.Dataset:
        """Train by small steps of gradient descent until the first neuron is large."""
        # An adaptive solver would shorten its steps indefinitely when a neuron slides along a kink.
        method = Descent(learning_rate=self.learning_rate, steps=int(self.steps[-1]), save=self.steps)
        run = observe(self.task, self.network, method=method, scale=self.study.scale, probes=[_alignment])
        run = run.record.isel(neuron=self.compared)
        axes, sizes = run["size"].dims, run["size"].to_numpy()
        angles = self.paths.chosen(self.compared).angles(run["direction"].to_numpy())
        return run.assign(growth=(axes, np.log(sizes / sizes[0])), angle=(axes, angles)).drop_vars("size")

    def trained_to_learn(self, scale: float) -> xr.Dataset:
        """Train by gradient flow through the jumps."""
        if self.study.data == "general":
            duration = training_time(self.alternation, scale)
        else:
            duration = 1.25 * float(self.staircase(scale).times[-1])
        # Here no neuron slides along a kink, but neurons cross kinks, where the error of a step is of first order.
        return observe(
            self.task,
            self.network,
            method=GradientFlow(duration=duration, solver=Solver(relative_tolerance=1e-6), save=2000),
            scale=scale,
        ).record

    def predicted_paths(self) -> Values:
        """The exact path of each compared neuron under constant residuals."""
        paths = self.paths.chosen(self.compared)
        directions, growths = paths.at(self.times)
        return {
            "loss": np.full(len(self.times), self.task.target_power / 2),
            "direction": (("time", "neuron", "feature"), directions),
            "growth": (("time", "neuron"), growths),
            "angle": (("time", "neuron"), paths.angles(directions)),
            "extremal_direction": (("neuron", "feature"), [path.end for path in paths.paths]),
            **{name: ("neuron", [getattr(path, name) for path in paths.paths]) for name in ("kind", "rate")},
        }

    def staircase(self, scale: float) -> Staircase:
        """The staircase on orthogonal inputs."""
        first, second = map(np.asarray, (self.network.first, self.network.second))
        return orthogonal_staircase(self.task.inputs, self.task.targets, scale=scale, first=first, second=second)

    @functools.cached_property
    def alternation(self) -> xr.Dataset:
        """The first two jumps on general data by alternating gradient flow."""
        return predict(self.task, self.network, scale=self.study.scale, jumps=2, curve=False).record


def _alignment(network: TwoLayer) -> Values:
    sizes = jnp.linalg.norm(network.first, axis=0)
    return {"direction": (("neuron", "feature"), (network.first / sizes).T), "size": (("neuron",), sizes)}
