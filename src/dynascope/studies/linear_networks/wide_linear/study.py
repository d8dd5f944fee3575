"""Wide linear networks: the function obeys an equation that depends on the layer imbalance δ only through δ²."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import numpy as np
import xarray as xr
from annotated_types import Ge

from dynascope.flows.solvers.solver import Solver
from dynascope.networks import TwoLayer
from dynascope.networks.balanced_linear import isotropic_linear
from dynascope.probes.kernel.path import kernel_path
from dynascope.studies import Reference, Study, Values, exact, parameter
from dynascope.studies.linear_networks.wide_linear import page
from dynascope.tasks import Task
from dynascope.tasks.known_modes import unit_regression
from dynascope.theory import LayerRates, papers
from dynascope.theory.function_space import (
    conserved_matrix,
    isotropic_flow,
    isotropic_preconditioner,
    preconditioner_matrix,
)
from dynascope.theory.function_space.isotropic import trace_drift
from dynascope.training import Descent, descend
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

_LONGEST_STEP = 0.004  # step size of gradient descent, in units of the fastest time constant
_SPAN = 5.0  # duration, in units of the slowest time constant
_AXES = {"coefficients": ("time", "feature", "target"), "step_drift": ("learning_rate",)}


class WideLinear(Study):
    """Tests the predicted functions and NTKs of two isotropic linear networks with the same initial function.

    One network has as many hidden neurons as outputs, and a second layer with larger weights (δ > 0). The other has as
    many hidden neurons as inputs, and a first layer with larger weights (δ < 0). For both, the conserved imbalance
    matrix Δ is a multiple of the identity (isotropic layers). The theory predicts that both functions obey the same
    equation, which depends on δ only through δ². The study also measures the drift of Δ in gradient descent with two
    step sizes; the drift is proportional to the step size.
    """

    inputs: PositiveInt = parameter(3, "Number of inputs.")
    outputs: PositiveInt = parameter(2, "Number of outputs.")
    imbalance: PositiveFloat = parameter(
        0.5, "Imbalance δ > 0, with Δ = η₁ A Aᵀ − η₂ Wᵀ W = δ I. The second network has imbalance −δ."
    )
    initial_size: PositiveFloat = parameter(
        0.1, "Standard deviation of the entries of the initial map, which is the same for both networks."
    )
    first_rate: PositiveFloat = parameter(1.0, "Learning rate η₁ of the first layer W.")
    second_rate: PositiveFloat = parameter(1.0, "Learning rate η₂ of the second layer A.")
    whitened: bool = parameter(
        False, "Whether the inputs are whitened. Otherwise, their variances range from 1 to 0.3."
    )
    samples: PositiveInt = parameter(20, "Number of samples.", least="inputs")
    times: Annotated[int, Ge(2)] = parameter(200, "Number of recorded times.")
    seed: Seed = parameter(0, "Seed of the task and of the initial map.")

    reference = Reference.of(
        papers.UNBALANCED,
        "The function of an isotropic two-layer linear network obeys a closed equation that depends on the magnitude "
        "of the layer imbalance but not on its sign.",
    )
    theory = "isotropic two-layer linear networks in function space"
    trains = "linear"
    symbols = {"imbalance": "δ"}
    along = ("time", "learning_rate")
    title = "Layer imbalance in wide linear networks"
    question = "In a network with several outputs, does it matter which of the two layers has the larger weights?"
    figures, meaning = page.figures, page.meaning
    equation = (
        r"\dot\beta = -\left( G \sqrt{\kappa^2 \beta^\top \beta + \frac{\delta^2}{4}} + \sqrt{\kappa^2 \beta "
        r"\beta^\top + \frac{\delta^2}{4}} \; G \right), \quad G = E[x x^\top] \beta - E[x y^\top]"
    )
    minutes = 0.3
    labelled = {
        "learning_rate": "_steps",
        "imbalance": "_imbalances",
        "feature": "_task.feature_names",
        "target": "_task.target_names",
    }
    names = {
        "conserved_drift": ("drift of the conserved quantity", "1"),
        "step_drift": ("drift of the conserved quantity in discrete steps", "1"),
        "kernel_trace": ("trace of the NTK", "1"),
    }
    tolerance = {
        **exact(
            *("loss", "coefficients", "kernel_trace", "kernel_change"),
            reason="the theory is exact, and the local errors of the solvers are below 1e-10",
        ),
        **exact(
            "step_drift",
            error=0.03,
            reason="the drift is predicted to first order in the step size; each step changes the map by less than 1 %",
        ),
    }
    tiny = {"samples": 4, "times": 30}

    def trained(self) -> xr.Dataset:
        """Train both networks by gradient flow, and by gradient descent with two step sizes."""
        runs = [self._flow(each) for each in self._imbalances]
        joined = xr.concat(runs, "imbalance", combine_attrs="drop_conflicts", join="exact")
        return joined.assign_coords(imbalance=self._imbalances)

    def exact(self) -> Values:
        """Integrate the equation of the function, and compute the first-order drift along its solution."""
        members = [self._path(*each) for each in zip(self._imbalances, (self.outputs, self.inputs), strict=True)]
        found = {name: np.stack([each[name] for each in members]) for name in members[0]}
        return {name: (("imbalance", *_AXES.get(name, ("time",))), values) for name, values in found.items()}

    def _flow(self, imbalance: float) -> xr.Dataset:
        network = isotropic_linear(self._start, imbalance, first_rate=self.first_rate, second_rate=self.second_rate)
        rates = {"first": self.first_rate, "second": self.second_rate}
        run = self.integrate(network, _layers, learning_rate=rates, solver=Solver(relative_tolerance=1e-10))
        first, second = run["first"].to_numpy(), run["second"].to_numpy()
        charge = np.asarray(conserved_matrix(first, second, rates=self._rates))
        values = {
            "coefficients": first @ second,
            "conserved_drift": np.linalg.norm(charge - imbalance * np.eye(charge.shape[-1]), axis=(-2, -1)),
            "step_drift": [self._step_drift(network, step) for step in self._steps],
            **_kernel_curves(preconditioner_matrix(first, second, rates=self._rates)),
        }
        named = {name: (_AXES.get(name, ("time",)), each) for name, each in values.items()}
        return self.run_record(run, named, without=["first", "second"])

    def _path(self, imbalance: float, width: int) -> dict[str, np.ndarray]:
        task, rate = self._task, (self.first_rate * self.second_rate) ** 0.5
        between = -(-2000 // (self.times - 1))  # the drift is an integral on a finer grid
        fine = np.linspace(0.0, self._times[-1], (self.times - 1) * between + 1)
        path = isotropic_flow(fine, task.inputs, task.targets, self._start, imbalance, width, rate=rate)
        beta = np.asarray(path.coefficients)
        gradients = task.input_moment @ beta - task.cross_moment.T
        return {
            "loss": np.asarray(path.loss)[::between],
            "coefficients": beta[::between],
            "step_drift": self._steps * trace_drift(fine, beta, gradients, imbalance, rate=rate),
            **_kernel_curves(isotropic_preconditioner(beta[::between], imbalance, width, rate=rate)),
        }

    def _step_drift(self, network: TwoLayer, step: float) -> float:
        """Change in tr Δ during gradient descent."""
        steps = round(self._times[-1] / step)
        rates = {"first": step * self.first_rate, "second": step * self.second_rate}
        method = Descent(learning_rate=rates, steps=steps, save=[0, steps])
        _, end = descend(self._task, network, method, return_networks=True)
        layers = ((np.asarray(each.first), np.asarray(each.second)) for each in (network, end))
        before, after = (self.first_rate * np.sum(u**2) - self.second_rate * np.sum(w**2) for w, u in layers)
        return after - before

    @property
    def _rates(self) -> LayerRates:
        return LayerRates(self.first_rate, self.second_rate)

    @functools.cached_property
    def _task(self) -> Task:
        options = {"samples": self.samples, "least_variance": self._least_variance, "seed": self.seed}
        return unit_regression(self.inputs, self.outputs, **options)

    @property
    def _least_variance(self) -> float:
        return 1.0 if self.whitened else 0.3

    @property
    def _imbalances(self) -> np.ndarray:
        return np.array([self.imbalance, -self.imbalance])

    @functools.cached_property
    def _start(self) -> np.ndarray:
        """The initial map of both networks, (d, c)."""
        return self.initial_size * np.random.default_rng([self.seed, 1]).normal(size=(self.inputs, self.outputs))

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Five time constants of the slowest direction near the target."""
        return np.linspace(0.0, _SPAN / (self._least_variance * self._fastest), self.times)

    @property
    def _fastest(self) -> float:
        """The rate of the strongest mode at its target strength of one."""
        return float((4 * self.first_rate * self.second_rate + self.imbalance**2) ** 0.5)

    @property
    def _steps(self) -> np.ndarray:
        """Two step sizes that both divide the duration."""
        fewest = np.ceil(self._times[-1] * self._fastest / _LONGEST_STEP)
        return self._times[-1] / np.array([2 * fewest, fewest])


def _kernel_curves(kernel: Any) -> dict[str, np.ndarray]:
    """Trace of the matrix M and its relative change over time."""
    kernel = np.asarray(kernel)
    return {"kernel_trace": np.trace(kernel, axis1=-2, axis2=-1), "kernel_change": kernel_path(kernel).change}


def _layers(network: TwoLayer) -> dict[str, tuple[tuple[str, str], Any]]:
    return {"first": (("feature", "neuron"), network.first), "second": (("neuron", "target"), network.second)}
