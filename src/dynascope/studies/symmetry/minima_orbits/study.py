"""Minima are orbits of symmetries: flat along these alone, and sharper at one point than at another."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from dynascope.compilation import jit
from dynascope.errors import DivergenceError
from dynascope.flows import gradient_flow
from dynascope.networks.balanced_linear import balanced_networks
from dynascope.studies import Reference, Study, Values, curve_tolerance
from dynascope.studies.fields import choices, count, positive, seed, weakest
from dynascope.studies.symmetry.formulas import LAWS, SMALL, Formula, Orbit, along_orbit, drawn
from dynascope.studies.symmetry.minima_orbits.page import FIGURES, MEANING
from dynascope.symmetry import orbit_directions
from dynascope.tasks import Task
from dynascope.tasks.random_maps import random_map, whitened

# Where layers mix by any matrix, the directions of an orbit are those that gradients at one point leave open.
_DIRECTIONS = {name: each.bound for name, each in LAWS.items()}
_FLAT = 1e-10  # curvature over the largest, below which it is rounding
_ROUNDING = np.finfo(float).eps
_ALONG = ("path_loss", "path_gradient")
_BIAS, _LINEAR_START = 0.3, 0.3  # of teachers, and size of the smaller layer where linear networks start
_DURATION = 20.0
_LAZIEST = 20  # balance over the weakest mode, beyond which a layer takes thousands of times to turn
_NEAR = 0.2  # size of what starts are off the teacher
_STEPS, _FARTHEST = 30, 0.1  # of Gauss and Newton after training, and the length of each over the norm of the weights
_LEARNED = 1e-24  # loss at which outputs are the teacher's to rounding
_COUNTED = (0.0, "directions are counted, and so are both exact")
_SHARP = (1e-6, "the closed form is exact, and training ends within 1e-8 of the minimum")
_IDENTITY = (1e-9, "it holds at every point; what remains is rounding, where the weights are moved far")


class MinimaOrbits(Study):
    """Flat directions of trained networks, and how sharp linear networks of several balances end.

    Each of the small networks learns from a teacher of its own kind, from near that, until its loss is rounding. The
    directions in which the Hessian is zero are counted and judged against those of the symmetry group: n for n
    rescaled units, r² where r linear units mix. Two-layer linear networks with W₂ W₂ᵀ − W₁ᵀ W₁ = λ I learn a random map
    s₁ > s₂ > … of white inputs. They end on one orbit, each at the point that its λ says, with the largest curvature
    √(4 s₁² + λ²); moved along the orbit, by e^τ W₂ and e^−τ W₁, it is s e^(2τ) + r e^(−2τ), with s, r = √(s₁² + λ²/4) ±
    λ/2. Both are known without training, and judged. Checked are loss and gradient along the orbits of random points.
    """

    networks: list[str] = choices(list(_DIRECTIONS), "Networks whose flat directions are counted.", list(_DIRECTIONS))
    samples: int = count(100, "Number of samples that they learn.", least=50)
    inputs: int = count(4, "Number of inputs of the linear networks of several balances.", least=2)
    outputs: int = count(3, "Number of their outputs.", least=2)
    strongest: float = positive(2.0, "Largest singular value s₁ of the map that they learn.")
    weakest: float = weakest(1.0)
    largest_balance: float = positive(4.0, "Largest λ; the smallest is its negative.")
    balances: int = count(5, "Number of equally spaced λ.", least=2)
    distance: float = positive(0.8, "Largest τ by which weights are moved along their orbit, in both ways.", most=2.0)
    places: int = count(8, "Number of τ on either side of zero.")
    seed: int = seed("Seed of the networks and of the data.")

    reference = Reference(
        "D. Kunin, J. Sagastuy-Breña, S. Ganguli, D. L. K. Yamins, H. Tanaka, Neural Mechanics: Symmetry and Broken "
        "Conservation Laws in Deep Learning Dynamics",
        "2012.04728",
        "Symmetries fix the geometry of the loss: its minima are orbits, flat along the symmetries alone, and where on "
        "its orbit a network ends is decided by what its start conserves.",
    )
    theory = "geometry of symmetries"
    task = "a teacher of its own kind, and a random map"
    told = ("{samples} Gaussian inputs for each small network, and white inputs for the linear ones.",)
    trains = "small networks"
    flow = "gradient flow, of small networks followed by steps of Gauss and Newton"
    along = ("architecture", "along")
    symbols = {"balance": "λ"}
    labelled = {"architecture": "networks", "balance": "_balances", "along": "_places"}
    title = "Minima are orbits"
    question = "In which directions is a minimum flat, and how sharp is the one that training finds?"
    meaning = MEANING
    figures = FIGURES
    names = {
        "flat_directions": ("flat directions of the minimum", "1"),
        "sharpness": ("largest curvature", "1"),
        "end_sharpness": ("largest curvature where training ended", "1"),
        "least_curvature": ("least curvature that is not taken for zero, over the largest", "1"),
        "orbit_curvature": ("largest curvature along symmetries, over the largest", "1"),
        "path_loss": ("loss along an orbit", "1"),
        "path_gradient": ("norm of the gradient along an orbit", "1"),
        "along": ("place τ on the orbit", "1"),
        "loss": ("loss at the minimum", "1"),
    }
    minutes = 0.7
    tolerance = curve_tolerance(
        flat_directions=_COUNTED, sharpness=_SHARP, path_loss=_IDENTITY, path_gradient=_IDENTITY
    )
    checks = ("path_loss", "path_loss_maximum", "path_gradient", "path_gradient_maximum")
    tiny = {"networks": ["linear 2-2-2", "ReLU"], "balances": 2, "places": 2}

    def check(self) -> None:
        """Some symmetry, and layers that turn in time."""
        self.require(any(_DIRECTIONS[each] for each in self.networks), "networks", "choose another one besides tanh")
        lazy = self.largest_balance > _LAZIEST * self.weakest
        self.require(not lazy, "largest_balance", f"choose at most {_LAZIEST} times the weakest", beside="weakest")

    def trained(self) -> Values:
        """Train to a minimum, take the curvatures, and move along orbits."""
        minima = [self._minimum(name) for name in self.networks]
        spectra = [each / each[-1] for each, _, _ in minima]
        flat = [int((each < _FLAT).sum()) for each in spectra]
        sharpness = self._sharpness()
        paths = [self._path(name) for name in self.networks]
        return {
            "flat_directions": ("architecture", flat),
            "least_curvature": ("architecture", [each[n] for each, n in zip(spectra, flat, strict=True)]),
            "orbit_curvature": ("architecture", [curved / each[-1] for each, curved, _ in minima]),
            "loss": ("architecture", [loss for _, _, loss in minima]),
            "sharpness": (("balance", "along"), sharpness),
            "end_sharpness": ("balance", sharpness[:, self.places]),
            **{name: (("architecture", "along"), [each[k] for each in paths]) for k, name in enumerate(_ALONG)},
        }

    def exact(self) -> Values:
        """The directions of the symmetries, the sharpness by the balance, and what orbits leave as it is."""
        half = self._balances[:, None] / 2
        both, moved = np.hypot(self.strongest, half), np.exp(2 * self._places)
        paths = [self._told_path(name) for name in self.networks]
        return {
            "flat_directions": ("architecture", [_DIRECTIONS[name] for name in self.networks]),
            "sharpness": (("balance", "along"), (both + half) * moved + (both - half) / moved),
            **{name: (("architecture", "along"), [each[k] for each in paths]) for k, name in enumerate(_ALONG)},
        }

    def _minimum(self, name: str) -> tuple[np.ndarray, float, float]:
        """The curvatures of a network that has learned, ascending, the largest along its orbit, and its loss."""
        start, task = self._start(name), self._data(name)
        # What is left is for steps that converge faster; solvers creep at the kinks of ReLU.
        options: Any = {"duration": _DURATION, "save": 2, "relative_tolerance": 1e-6}
        _, network = gradient_flow(start, task, **options, return_networks=True)
        theta, back = ravel_pytree(jax.tree.map(np.asarray, network.weights))
        geometry = functools.partial(_geometry, start.apply, inputs=task.inputs, targets=task.targets)
        for _ in range(_STEPS):
            _, error, slopes, _ = geometry(back(theta))
            step = np.linalg.lstsq(np.asarray(slopes), np.asarray(error), rcond=_FLAT)[0]
            theta = theta - step * min(1.0, _FARTHEST * np.linalg.norm(theta) / max(np.linalg.norm(step), _ROUNDING))
        loss, _, _, hessian = geometry(back(theta))
        if loss > _LEARNED:
            raise DivergenceError(
                f"the {name} network came to rest at a loss of {loss:.1g}", time=_DURATION, remedy="choose another seed"
            )
        along = orbit_directions(jax.tree.map(np.asarray, back(theta)), [charge for charge, _ in self._orbits[name]])
        curved = np.linalg.norm(along @ np.asarray(hessian), axis=1).max(initial=_ROUNDING)
        return np.linalg.eigvalsh(np.asarray(hessian)), float(curved), float(loss)

    def _sharpness(self) -> np.ndarray:
        """The largest curvature of linear networks at the places of their orbits, shape (balances, places)."""
        task = whitened(self._map, "a random map")
        sizes = self.inputs, min(self.inputs, self.outputs), self.outputs
        starts = balanced_networks(sizes, self._balances, one_sign=True, scale=_LINEAR_START, seed=self.seed)
        # A large layer has to turn to the weakest mode, the slower the larger it is.
        rate = np.hypot(self.weakest, self.largest_balance / 2) - self.largest_balance / 2
        options: Any = {"duration": 30.0 / rate, "save": 2, "relative_tolerance": 1e-10}
        _, ends = gradient_flow(starts, task, **options, return_networks=True)
        pairs = zip(ends.first, ends.second, strict=True)
        layers = ((first / c, second * c) for first, second in pairs for c in np.exp(self._places))
        found = [_geometry(_product, pair, task.inputs, task.targets)[-1] for pair in layers]
        return np.linalg.eigvalsh(np.array(found))[:, -1].reshape(self.balances, -1)

    def _path(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The loss and the norm of its gradient along an orbit, from the random start."""
        start, task = self._start(name), self._data(name)
        moved = [along_orbit(self._orbits[name], start.weights, each) for each in self._places]
        found = [_slope(start.apply, each, task.inputs, task.targets) for each in moved]
        return np.array([loss for loss, _ in found]), np.array([_norm(slope) for _, slope in found])

    def _told_path(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The loss of the start everywhere, and the gradient of the start through the inverse of the symmetry."""
        start, task = self._start(name), self._data(name)
        loss, slope = _slope(start.apply, start.weights, task.inputs, task.targets)
        norms = []
        for place in self._places:
            moved = along_orbit(self._orbits[name], start.weights, place)
            _, pulled = jax.vjp(lambda each, t=-place: along_orbit(self._orbits[name][::-1], each, t), moved)
            norms.append(_norm(pulled(jax.tree.map(jnp.asarray, slope))[0]))
        return np.full(len(norms), loss), np.array(norms)

    def _start(self, name: str) -> Formula:
        """A network near its teacher."""
        noise = drawn(SMALL[name], np.random.default_rng([self.seed, 1]), _NEAR)
        return Formula(jax.tree.map(np.add, self._teacher(name).weights, noise.weights), noise.apply)

    def _teacher(self, name: str) -> Formula:
        """A random network; hidden neurons have weights of norm one and small biases, so that none is always off."""
        teacher = drawn(SMALL[name], np.random.default_rng([self.seed, 2]))
        if "bias" not in teacher.weights:
            return teacher
        first, bias = teacher.weights["first"], _BIAS * teacher.weights["bias"]
        return Formula(teacher.weights | {"first": first / np.linalg.norm(first, axis=0), "bias": bias}, teacher.apply)

    def _data(self, name: str) -> Task:
        inputs = np.random.default_rng([self.seed, 3]).normal(size=(self.samples, SMALL[name].entering))
        return Task(inputs, np.asarray(self._teacher(name)(inputs)))

    @functools.cached_property
    def _orbits(self) -> dict[str, Orbit]:
        draw = np.random.default_rng([self.seed, 4])
        return {name: self._start(name).orbit(self._data(name).inputs[:12], draw) for name in self.networks}

    @functools.cached_property
    def _map(self) -> np.ndarray:
        strengths = np.linspace(self.strongest, self.weakest, min(self.inputs, self.outputs))
        return random_map(np.random.default_rng(self.seed), self.inputs, self.outputs, strengths)

    @property
    def _balances(self) -> np.ndarray:
        return np.linspace(-self.largest_balance, self.largest_balance, self.balances)

    @property
    def _places(self) -> np.ndarray:
        return np.linspace(-self.distance, self.distance, 2 * self.places + 1)


@functools.partial(jit, static_argnums=0)
def _geometry(apply: Any, weights: Any, inputs: Any, targets: Any) -> tuple[Any, Any, Any, Any]:
    """The loss, what outputs are off, with its derivatives, and the Hessian of the loss, over the flat weights."""
    flat, back = ravel_pytree(weights)

    def error(theta: Any) -> Any:
        return jnp.ravel(apply(back(theta), inputs) - targets)

    def loss(theta: Any) -> Any:
        return jnp.sum(error(theta) ** 2) / (2 * len(inputs))

    return loss(flat), error(flat), jax.jacobian(error)(flat), jax.hessian(loss)(flat)


@functools.partial(jit, static_argnums=0)
def _slope(apply: Any, weights: Any, inputs: Any, targets: Any) -> tuple[Any, Any]:
    def loss(theta: Any) -> Any:
        return jnp.sum((apply(theta, inputs) - targets) ** 2) / (2 * len(inputs))

    return jax.value_and_grad(loss)(weights)


def _product(weights: tuple[Any, Any], inputs: Any) -> Any:
    return inputs @ weights[0] @ weights[1]


def _norm(tree: Any) -> float:
    return float(np.sqrt(sum(np.vdot(each, each) for each in jax.tree.leaves(tree))))
