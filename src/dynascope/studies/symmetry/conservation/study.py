"""What symmetries conserve stays while networks learn, and by how much the ε of a normalisation breaks it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline

from dynascope.comparison import Claim
from dynascope.flows import gradient_flow
from dynascope.results import Chart, Comparison
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance
from dynascope.studies.fields import choices, count, positive, seed
from dynascope.studies.symmetry.conservation.page import FIGURES, MEANING
from dynascope.studies.symmetry.formulas import ZOO, Formula, convolutional, drawn
from dynascope.symmetry import Charge, charges
from dynascope.tasks import Task
from dynascope.theory import papers
from dynascope.theory.symmetry import gradient_flow_charge

_BROKEN = "epsilon"
_SCALE = 0.5  # of weights
# Error of a step: with kinks, where solvers creep if it is less; where ε moves charges by little; and elsewhere.
_ACCURACY = {"ReLU": 1e-7, _BROKEN: 1e-12}
_USUAL = 1e-10
_KEPT = (1e-5, "with kinks the solver keeps each step within 1e-7, and takes about a hundred; without, closer by far")
_ROUNDING = 1e-8  # a hundred steps of the usual accuracy
_OFF = 0.01  # of the integral by which ε moves a charge, which is a sum over recorded times
_MOVED = 0.1  # of their norm, by which weights must have moved for charges that stay to mean something


class _Run(NamedTuple):
    """What was recorded of a network at all times.

    Attributes:
        loss: The loss.
        charges: Its charges, shape (time, charge).
        moved: How far its weights are from their start, over the norm of that.
        defect: The rates at which ε moves charges by theory, shape (time, channel), zero of other networks.
    """

    loss: np.ndarray
    charges: np.ndarray
    moved: np.ndarray
    defect: np.ndarray


class Conservation(ClaimsStudy):
    """The charges of networks of several kinds, read off their programs, along gradient flow on the data of a teacher.

    Trained are three linear layers; two hidden layers of ReLU with biases; a convolution whose channels are normalised
    over the batch, with ε = 0 and with ε > 0; and a transformer block of two heads and squared ReLU, with RMS norms.

    Every charge θᵀGθ is to stay what it is at the start: AᵀA − WWᵀ of linear layers, ‖out‖² − ‖in‖² of units, ‖w‖² of
    the channels before a normalisation, matrices of queries and keys, of values and outputs. The last holds for a
    normalisation by √(v + ε) at ε = 0. At ε > 0 the loss is that of another ε where weights are scaled, so that
    d‖w_c‖²/dt = 4 ε ∂L/∂ε_c; what that adds up to along the run is subtracted from the charge, and the claim is that
    it is what the charge has moved by.
    """

    networks: list[str] = choices(
        list(ZOO), 'Networks that are trained; "epsilon" is that with batch norm, with ε > 0.', list(ZOO)
    )
    epsilon: float = positive(1e-5, "ε of the normalisation that has one.", most=1e-2)
    samples: int = count(60, "Number of samples that they learn.", least=20)
    duration: float = positive(10.0, "Gradient-flow time for which they are trained.", least=1.0, most=100.0)
    times: int = count(400, "Number of times at which charges are recorded.", least=200)
    seed: int = seed("Seed of the networks and of the data.")

    reference = Reference.of(
        papers.CONSERVATION,
        "Gradient flow conserves a quantity for every linear symmetry with a symmetric generator, whatever the data.",
    )
    theory = "conservation laws of gradient flow"
    task = "a teacher of the same kind"
    told = ("{samples} Gaussian inputs; the targets are the outputs of another network of the kind.",)
    trains = "networks of several kinds"
    flow = "gradient flow"
    axes = ("architecture", "time")
    along = "time"
    labelled = {"architecture": "networks", "charge": "_charge_names", "neuron": lambda _: [1, 2, 3]}
    title = "What training conserves"
    question = "Which quantities stay the same while a network learns?"
    meaning = MEANING
    figures = FIGURES
    names = {
        "moved": ("distance of the weights from their start, over the norm of that", "1"),
        "drift": ("largest change of a charge, over the squared norm of the weights", "1"),
        "charges": ("conserved charges, less what ε moves them by", "1"),
        "epsilon_change": ("change of the squared norm of a channel", "1"),
        "epsilon_integral": ("change by theory of the squared norm of a channel", "1"),
    }
    minutes = 0.6
    tolerance = curve_tolerance(charges=_KEPT)
    tiny = {"networks": ["deep linear", _BROKEN], "times": 200}

    @property
    def judged_claims(self) -> tuple[str, ...]:
        """That charges stay where nothing is in the way, and what ε does, of the networks that there are."""
        return (*["exactly"] * bool(self._smooth), *["epsilon"] * (_BROKEN in self.networks))

    def trained(self) -> Values:
        """Train all networks, and follow their charges."""
        runs = {name: self._trained(name) for name in self.networks}
        starts = {name: float(np.sum(self._network(name).flat ** 2)) for name in self.networks}
        drifts = {name: np.abs(each.charges - each.charges[0]).max(axis=1) for name, each in runs.items()}
        values: dict[str, Any] = {
            "charges": (("charge", "time"), np.concatenate([self._mended(each) for each in runs.values()])),
            "drift": [drifts[name] / size for name, size in starts.items()],
            "moved": [each.moved for each in runs.values()],
            "loss": [each.loss for each in runs.values()],
        }
        if _BROKEN in runs:
            broken = runs[_BROKEN]
            values["epsilon_change"] = (("neuron", "time"), (broken.charges - broken.charges[0]).T)
            values["epsilon_integral"] = (("neuron", "time"), self._integral(broken).T)
        return values

    def exact(self) -> Values:
        """Charges that stay what they are at the start."""
        starts = [np.asarray(charges(self._network(name).weights, _symmetries(name))) for name in self.networks]
        return {"charges": (("charge", "time"), gradient_flow_charge(self._times, np.concatenate(starts)).T)}

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Judge the charges, and show beside what ε moved what theory says of that run."""
        tree = super().compare(observed, predicted)
        if "epsilon_integral" in observed:
            return dataclasses.replace(tree, predicted=predicted.assign(epsilon_change=observed["epsilon_integral"]))
        return tree

    def charts(self) -> tuple[Chart, ...]:
        """What ε moves is drawn if there is such a network."""
        drift, moved, loss = self.figures
        return (drift, moved, loss) if _BROKEN in self.networks else (drift, loss)

    def claimed(self, found: Mapping[str, Any]) -> list[Claim]:
        """That weights move, and that ε moves charges by its integral."""
        moved = float(np.min([each[-1] for each in found["moved"]]))
        claims = [Claim("weights move", "In all networks the weights have moved by a tenth.", moved, least=_MOVED)]
        if self._smooth:
            largest = float(np.max([found["drift"][self.networks.index(name)] for name in self._smooth]))
            statement = "Without kinks and ε the largest change of a charge, over the size of the weights, is rounding."
            claims.append(Claim("exactly", statement, largest, most=_ROUNDING))
        if _BROKEN in self.networks:
            change, integral = (found[name][1] for name in ("epsilon_change", "epsilon_integral"))
            largest = np.abs(integral).max()
            off = float(np.abs(change - integral).max() / largest)
            # What the solver itself moves charges by: its error of each step, over a thousand steps.
            chance = float(1e3 * _ACCURACY[_BROKEN] * np.sum(self._network(_BROKEN).flat ** 2) / largest)
            statement = "The share of what ε moves charges by that theory does not tell."
            claims.append(Claim("epsilon", statement, off, max(0.0, off - chance), off + chance, most=_OFF))
        return claims

    def _trained(self, name: str) -> _Run:
        start, task = self._network(name), self._task(name)
        partial: Any = jax.tree_util.Partial
        statistics: dict[str, Any] = {
            "charges": (_measured(name), ["charge"]),
            "moved": (partial(_distance, start.weights), []),
        }
        if name == _BROKEN:
            statistics["defect"] = (partial(_defect, task.inputs, task.targets), ["neuron"])
        run = gradient_flow(
            start,
            task,
            duration=self.duration,
            save=self._times,
            statistics=statistics,
            relative_tolerance=_ACCURACY.get(name, _USUAL),
        )
        found = {key: run[key].to_numpy() for key in ("loss", *statistics)}
        return _Run(**{"defect": np.zeros_like(found["charges"]), **found})

    def _mended(self, run: _Run) -> np.ndarray:
        """The charges less what ε has moved them by, shape (charge, time)."""
        return (run.charges - self._integral(run)).T

    def _integral(self, run: _Run) -> np.ndarray:
        return CubicSpline(self._times, run.defect).antiderivative()(self._times)

    def _network(self, name: str) -> Formula:
        network = drawn(ZOO[name], np.random.default_rng([self.seed, 1]), _SCALE)
        constants = {"epsilon": np.array(self.epsilon)} if name == _BROKEN else {}
        return Formula(network.weights, network.apply, constants)

    def _task(self, name: str) -> Task:
        draw = np.random.default_rng([self.seed, 2])
        teacher = drawn(ZOO[name], draw, _SCALE)
        inputs = draw.normal(size=(self.samples, ZOO[name].entering))
        return Task(inputs, np.asarray(teacher(inputs)))

    @property
    def _smooth(self) -> list[str]:
        return [name for name in self.networks if name not in _ACCURACY]

    @property
    def _times(self) -> np.ndarray:
        # Closer where training is fast.
        return self.duration * np.linspace(0.0, 1.0, self.times) ** 2

    @property
    def _charge_names(self) -> list[str]:
        sizes = {name: sum(each.size for each in _symmetries(name)) for name in self.networks}
        return [f"{name} {k}" for name, size in sizes.items() for k in range(1, size + 1)]


# Kept, so that programs are found again.
@functools.cache
def _symmetries(name: str) -> tuple[Charge, ...]:
    """Those that the program of a network has, with ε left out of it."""
    draw = np.random.default_rng(0)
    network = drawn(ZOO[name], draw)
    return network.symmetries(draw.normal(size=(8, ZOO[name].entering))).symmetries


@functools.cache
def _measured(name: str) -> Any:
    symmetries = _symmetries(name)
    return lambda network: charges(network.weights, symmetries)


def _distance(start: Mapping[str, Any], network: Formula) -> Any:
    """How far weights are from others, over the norm of those."""
    pairs = zip(jax.tree.leaves(network.weights), jax.tree.leaves(start), strict=True)
    sizes = [(jnp.sum((one - other) ** 2), jnp.sum(jnp.asarray(other) ** 2)) for one, other in pairs]
    away, whole = (sum(each) for each in zip(*sizes, strict=True))
    return jnp.sqrt(away / whole)


def _defect(inputs: Any, targets: Any, network: Formula) -> Any:
    """4 ε ∂L/∂ε of each channel, by which d‖w‖²/dt is more than zero."""
    epsilon = network.constants["epsilon"]

    def loss(each: Any) -> Any:
        return jnp.sum((convolutional(network.weights, inputs, each) - targets) ** 2) / (2 * len(inputs))

    return 4 * epsilon * jax.grad(loss)(jnp.full(network.weights["kernel"].shape[-1], epsilon))
