"""Charges of several architectures along gradient flow, and their drift if ε breaks the symmetry."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.interpolate import CubicSpline

from dynascope.flows import GradientFlow, Solver, gradient_flow, track
from dynascope.studies.symmetry.formulas import ZOO, Formula, convolutional, drawn, relative_distance
from dynascope.symmetry import Charge, charges
from dynascope.tasks import Task
from dynascope.theory.symmetry import gradient_flow_charge

if TYPE_CHECKING:
    from dynascope.studies import Values
    from dynascope.studies.symmetry.conservation.study import Conservation

__all__ = ["EPSILON", "Experiment", "network_symmetries"]

EPSILON = "epsilon"  # the network whose normalisation has ε > 0
_SCALE = 0.5  # scale of the initial weights
# Relative tolerances of the solver: looser for kinks, which force small steps, and tighter for the slow drift due to ε.
_ACCURACY = {"ReLU": 1e-7, EPSILON: 1e-12}
_USUAL_ACCURACY = 1e-10


class _Run(NamedTuple):
    """Measurements of one network at the recorded times.

    Attributes:
        loss: The loss, shape (time,).
        charges: The charges, shape (time, charge).
        moved: The distance from the initial weights, relative to their norm, shape (time,).
        defect: The drift rate of each charge due to ε, shape (time, charge); zero for all other networks.
    """

    loss: np.ndarray
    charges: np.ndarray
    moved: np.ndarray
    defect: np.ndarray


class Experiment:
    """Trains the networks of a study by gradient flow and records their charges.

    Args:
        study: The study that defines the networks and the data.
    """

    def __init__(self, study: Conservation):
        self.study = study

    def trained(self) -> Values:
        """Train all networks and record their charges."""
        runs = {name: self._run(name) for name in track(self.study.networks, "networks")}
        norms = {name: float(np.sum(self._network(name).flat ** 2)) for name in self.study.networks}
        changes = {name: np.abs(run.charges - run.charges[0]).max(axis=1) for name, run in runs.items()}
        corrected = [(run.charges - self._integral(run)).T for run in runs.values()]
        values: dict[str, Any] = {
            "charges": (("charge", "time"), np.concatenate(corrected)),
            "drift": [changes[name] / norm for name, norm in norms.items()],
            "moved": [run.moved for run in runs.values()],
            "loss": [run.loss for run in runs.values()],
        }
        if EPSILON in runs:
            run = runs[EPSILON]
            values["epsilon_change"] = (("neuron", "time"), (run.charges - run.charges[0]).T)
            values["epsilon_integral"] = (("neuron", "time"), self._integral(run).T)
        return values

    def exact(self) -> Values:
        """The initial values of the charges at all times."""
        initial = [
            np.asarray(charges(self._network(name).weights, network_symmetries(name))) for name in self.study.networks
        ]
        return {"charges": (("charge", "time"), gradient_flow_charge(self.times, np.concatenate(initial)).T)}

    @property
    def smooth_networks(self) -> list[str]:
        """Networks without kinks or ε, whose charges are conserved to the usual solver tolerance."""
        return [name for name in self.study.networks if name not in _ACCURACY]

    @property
    def epsilon_solver_error(self) -> float:
        """The solver error of a charge in the network with ε: the tolerance of a step times a thousand steps."""
        return float(1e3 * _ACCURACY[EPSILON] * np.sum(self._network(EPSILON).flat ** 2))

    @property
    def times(self) -> np.ndarray:
        """The recorded times, denser early in training, when the weights change fast."""
        return self.study.duration * np.linspace(0.0, 1.0, self.study.times) ** 2

    @property
    def charge_names(self) -> list[str]:
        """The name of each charge: its network and a number."""
        sizes = {name: sum(each.size for each in network_symmetries(name)) for name in self.study.networks}
        return [f"{name} {k}" for name, size in sizes.items() for k in range(1, size + 1)]

    def _run(self, name: str) -> _Run:
        initial, task = self._network(name), self._task(name)
        partial: Any = jax.tree_util.Partial
        statistics: dict[str, Any] = {
            "charges": (_charge_statistic(name), ["charge"]),
            "moved": (partial(relative_distance, initial.weights), []),
        }
        if name == EPSILON:
            statistics["defect"] = (partial(_defect, task.inputs, task.targets), ["neuron"])
        run = gradient_flow(
            task,
            initial,
            GradientFlow(
                duration=self.study.duration,
                solver=Solver(relative_tolerance=_ACCURACY.get(name, _USUAL_ACCURACY)),
                save=self.times,
                statistics=statistics,
            ),
        )
        found = {key: run[key].to_numpy() for key in ("loss", *statistics)}
        return _Run(**{"defect": np.zeros_like(found["charges"]), **found})

    def _integral(self, run: _Run) -> np.ndarray:
        """The predicted drift of the charges due to ε, shape (time, charge)."""
        return CubicSpline(self.times, run.defect).antiderivative()(self.times)

    def _network(self, name: str) -> Formula:
        network = drawn(ZOO[name], np.random.default_rng([self.study.seed, 1]), _SCALE)
        constants = {"epsilon": np.array(self.study.epsilon)} if name == EPSILON else {}
        return Formula(network.weights, network.apply, constants)

    def _task(self, name: str) -> Task:
        draw = np.random.default_rng([self.study.seed, 2])
        teacher = drawn(ZOO[name], draw, _SCALE)
        inputs = draw.normal(size=(self.study.samples, ZOO[name].entering))
        return Task(inputs, np.asarray(teacher(inputs)))


# Both functions are cached so that compiled programs are reused.
@functools.cache
def network_symmetries(name: str) -> tuple[Charge, ...]:
    """The symmetries of a network at ε = 0, found by analysing its program."""
    draw = np.random.default_rng(0)
    network = drawn(ZOO[name], draw)
    return network.symmetries(draw.normal(size=(8, ZOO[name].entering))).symmetries


@functools.cache
def _charge_statistic(name: str) -> Any:
    symmetries = network_symmetries(name)
    return lambda network: charges(network.weights, symmetries)


def _defect(inputs: Any, targets: Any, network: Formula) -> Any:
    """The drift rate d‖w‖²/dt = 4 ε ∂L/∂ε of each channel."""
    epsilon = network.constants["epsilon"]

    def loss(each: Any) -> Any:
        return jnp.sum((convolutional(network.weights, inputs, each) - targets) ** 2) / (2 * len(inputs))

    return 4 * epsilon * jax.grad(loss)(jnp.full(network.weights["kernel"].shape[-1], epsilon))
