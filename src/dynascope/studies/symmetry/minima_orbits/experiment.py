"""Minima of small networks and of two-layer linear networks, and their orbits."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from dynascope.compilation import jit
from dynascope.errors import DivergenceError
from dynascope.flows import GradientFlow, Solver, gradient_flow, track
from dynascope.networks.balanced_linear import balanced_networks
from dynascope.studies.symmetry.formulas import LAWS, SMALL, Formula, Orbit, along_orbit, drawn
from dynascope.symmetry import orbit_directions
from dynascope.tasks import Task
from dynascope.tasks.random_maps import random_map, whitened

if TYPE_CHECKING:
    from dynascope.studies import Values
    from dynascope.studies.symmetry.minima_orbits.study import MinimaOrbits

__all__ = ["FLAT_DIRECTIONS", "Experiment"]

# If layers can be mixed by any matrix, the orbit spans the directions orthogonal to the gradients at one point.
FLAT_DIRECTIONS = {name: each.bound for name, each in LAWS.items()}
_FLAT = 1e-10  # curvature, relative to the largest, below which it counts as rounding error
_ROUNDING = np.finfo(float).eps
_BIAS, _LINEAR_SCALE = 0.3, 0.3  # scales of teacher biases and of the smaller initial layer of linear networks
_DURATION = 20.0
_NEAR = 0.2  # scale of the initial distance from the teacher
_STEPS, _FARTHEST = 30, 0.1  # Gauss-Newton steps after training, and the largest step relative to the weights
_LEARNED = 1e-24  # loss below which outputs agree with the teacher up to rounding


class Experiment:
    """Trains the networks of a study to a minimum and moves weights along their orbits.

    Args:
        study: The study that defines the networks and the data.
    """

    def __init__(self, study: MinimaOrbits):
        self.study = study

    def trained(self) -> Values:
        """Train to a minimum, compute the curvatures, and move along the orbits."""
        minima = [self._minimum(name) for name in track(self.study.networks, "networks")]
        spectra = [each / each[-1] for each, _, _ in minima]
        flat = [int((each < _FLAT).sum()) for each in spectra]
        sharpness = self._sharpness()
        losses, gradients = zip(*(self._path(name) for name in self.study.networks), strict=True)
        return {
            "flat_directions": ("architecture", flat),
            "least_curvature": ("architecture", [each[n] for each, n in zip(spectra, flat, strict=True)]),
            "orbit_curvature": ("architecture", [along / each[-1] for each, along, _ in minima]),
            "loss": ("architecture", [loss for _, _, loss in minima]),
            "sharpness": (("balance", "along"), sharpness),
            "end_sharpness": ("balance", sharpness[:, self.study.places]),
            "path_loss": (("architecture", "along"), losses),
            "path_gradient": (("architecture", "along"), gradients),
        }

    def exact(self) -> Values:
        """The dimension of each orbit, the sharpness for each imbalance, and loss and gradient along the orbits."""
        half = self.balances[:, None] / 2
        both, factors = np.hypot(self.study.strongest, half), np.exp(2 * self.places)
        losses, gradients = zip(*(self._predicted_path(name) for name in self.study.networks), strict=True)
        return {
            "flat_directions": ("architecture", [FLAT_DIRECTIONS[name] for name in self.study.networks]),
            "sharpness": (("balance", "along"), (both + half) * factors + (both - half) / factors),
            "path_loss": (("architecture", "along"), losses),
            "path_gradient": (("architecture", "along"), gradients),
        }

    # Minima of the small networks.

    def _minimum(self, name: str) -> tuple[np.ndarray, float, float]:
        """The curvatures of a trained network in ascending order, the largest along its orbit, and its loss."""
        start, task = self._initial(name), self._task(name)
        # Gauss-Newton steps finish the training, because the solver takes tiny steps at the kinks of ReLU.
        method = GradientFlow(duration=_DURATION, solver=Solver(relative_tolerance=1e-6), save=2)
        _, network = gradient_flow(task, start, method, return_networks=True)
        theta, back = ravel_pytree(jax.tree.map(np.asarray, network.weights))
        geometry = functools.partial(_geometry, start.apply, inputs=task.inputs, targets=task.targets)
        for _ in range(_STEPS):
            _, error, slopes, _ = geometry(back(theta))
            step = np.linalg.lstsq(np.asarray(slopes), np.asarray(error), rcond=_FLAT)[0]
            theta = theta - step * min(1.0, _FARTHEST * np.linalg.norm(theta) / max(np.linalg.norm(step), _ROUNDING))
        loss, _, _, hessian = geometry(back(theta))
        if loss > _LEARNED:
            raise DivergenceError(
                f"training of the {name} network ended at a loss of {loss:.1g}",
                time=_DURATION,
                remedy="choose another seed",
            )
        along = orbit_directions(jax.tree.map(np.asarray, back(theta)), [charge for charge, _ in self._orbits[name]])
        curved = np.linalg.norm(along @ np.asarray(hessian), axis=1).max(initial=_ROUNDING)
        return np.linalg.eigvalsh(np.asarray(hessian)), float(curved), float(loss)

    def _initial(self, name: str) -> Formula:
        """A network near its teacher."""
        noise = drawn(SMALL[name], np.random.default_rng([self.study.seed, 1]), _NEAR)
        return Formula(jax.tree.map(np.add, self._teacher(name).weights, noise.weights), noise.apply)

    def _teacher(self, name: str) -> Formula:
        """A random network; hidden neurons have unit-norm weights and small biases, so that none is always inactive."""
        teacher = drawn(SMALL[name], np.random.default_rng([self.study.seed, 2]))
        if "bias" not in teacher.weights:
            return teacher
        first, bias = teacher.weights["first"], _BIAS * teacher.weights["bias"]
        return Formula(teacher.weights | {"first": first / np.linalg.norm(first, axis=0), "bias": bias}, teacher.apply)

    def _task(self, name: str) -> Task:
        draw = np.random.default_rng([self.study.seed, 3])
        inputs = draw.normal(size=(self.study.samples, SMALL[name].entering))
        return Task(inputs, np.asarray(self._teacher(name)(inputs)))

    # Loss and gradient along the orbits of the initial weights.

    def _path(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The loss and the norm of its gradient, computed at every point of the orbit."""
        start, task = self._initial(name), self._task(name)
        moved = [along_orbit(self._orbits[name], start.weights, each) for each in self.places]
        found = [_slope(start.apply, each, task.inputs, task.targets) for each in moved]
        return np.array([loss for loss, _ in found]), np.array([_norm(slope) for _, slope in found])

    def _predicted_path(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The initial loss, and the norm of the initial gradient transformed by the inverse symmetry."""
        start, task = self._initial(name), self._task(name)
        loss, slope = _slope(start.apply, start.weights, task.inputs, task.targets)
        norms = []
        for place in self.places:
            moved = along_orbit(self._orbits[name], start.weights, place)
            _, pulled = jax.vjp(lambda each, t=-place: along_orbit(self._orbits[name][::-1], each, t), moved)
            norms.append(_norm(pulled(jax.tree.map(jnp.asarray, slope))[0]))
        return np.full(len(norms), loss), np.array(norms)

    @functools.cached_property
    def _orbits(self) -> dict[str, Orbit]:
        draw = np.random.default_rng([self.study.seed, 4])
        return {name: self._initial(name).orbit(self._task(name).inputs[:12], draw) for name in self.study.networks}

    # Sharpness of the linear networks.

    def _sharpness(self) -> np.ndarray:
        """The largest curvature of linear networks at points of their orbits, shape (imbalances, places)."""
        study = self.study
        modes = min(study.inputs, study.outputs)
        strengths = np.linspace(study.strongest, study.weakest, modes)
        target = random_map(np.random.default_rng(study.seed), study.inputs, study.outputs, strengths)
        task = whitened(target, "a random map")
        sizes = study.inputs, modes, study.outputs
        starts = balanced_networks(sizes, self.balances, one_sign=True, scale=_LINEAR_SCALE, seed=study.seed)
        # The larger the initial layer, the more slowly it aligns with the weakest mode.
        rate = np.hypot(study.weakest, study.largest_balance / 2) - study.largest_balance / 2
        method = GradientFlow(duration=30.0 / rate, solver=Solver(relative_tolerance=1e-10), save=2)
        _, ends = gradient_flow(task, starts, method, return_networks=True)
        pairs = zip(ends.first, ends.second, strict=True)
        layers = ((first / c, second * c) for first, second in pairs for c in np.exp(self.places))
        found = [_geometry(_product, pair, task.inputs, task.targets)[-1] for pair in layers]
        return np.linalg.eigvalsh(np.array(found))[:, -1].reshape(study.balances, -1)

    @property
    def balances(self) -> np.ndarray:
        """The imbalances λ of the linear networks."""
        return np.linspace(-self.study.largest_balance, self.study.largest_balance, self.study.balances)

    @property
    def places(self) -> np.ndarray:
        """The positions τ on the orbits; training ends at τ = 0."""
        return np.linspace(-self.study.distance, self.study.distance, 2 * self.study.places + 1)


@functools.partial(jit, static_argnums=0)
def _geometry(apply: Any, weights: Any, inputs: Any, targets: Any) -> tuple[Any, Any, Any, Any]:
    """The loss, the output errors and their Jacobian, and the Hessian of the loss, over flat weights."""
    flat, back = ravel_pytree(weights)

    def error(theta: Any) -> Any:
        return jnp.ravel(apply(back(theta), inputs) - targets)

    def loss(theta: Any) -> Any:
        return jnp.sum(error(theta) ** 2) / (2 * len(inputs))

    return loss(flat), error(flat), jax.jacobian(error)(flat), jax.hessian(loss)(flat)


@functools.partial(jit, static_argnums=0)
def _slope(apply: Any, weights: Any, inputs: Any, targets: Any) -> tuple[Any, Any]:
    """The loss and its gradient."""

    def loss(theta: Any) -> Any:
        return jnp.sum((apply(theta, inputs) - targets) ** 2) / (2 * len(inputs))

    return jax.value_and_grad(loss)(weights)


def _product(weights: tuple[Any, Any], inputs: Any) -> Any:
    return inputs @ weights[0] @ weights[1]


def _norm(tree: Any) -> float:
    return float(np.sqrt(sum(np.vdot(each, each) for each in jax.tree.leaves(tree))))
