"""Saliency of random networks at every unit and cut; program analysis finds the units."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dynascope.studies.interventions.saliency_conservation.zoo import CLASSES, ZOO, Architecture, Weights, draw_weights
from dynascope.symmetry import Charge, find_symmetries
from dynascope.theory.interventions import activation_defect, cut_residuals, grasp_defect, normalisation_defect

__all__ = ["Experiment", "Sides"]

_MEAN_SPREAD = 0.4  # standard deviation of the running means


class Sides(NamedTuple):
    """Sums over the incoming and over the outgoing weights of every unit.

    Attributes:
        incoming: Sums over incoming weights and biases, shape (units,).
        outgoing: Sums over outgoing weights, shape (units,).
    """

    incoming: np.ndarray
    outgoing: np.ndarray


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Saliency of random networks on random data.

    Attributes:
        networks: Names of the architectures.
        draws: Number of draws of weights and data for each architecture.
        samples: Number of samples.
        seed: Seed of the draws.
    """

    networks: list[str]
    draws: int
    samples: int
    seed: int

    @functools.cached_property
    def saliency(self) -> Sides:
        """Sums of θ ∂R/∂θ for all units of all networks."""
        return _joined([_sides(charges, weights, g) for charges, weights, g, _ in self._derivatives])

    @functools.cached_property
    def grasp(self) -> Sides:
        """Sums of θ Hg for all units of all networks."""
        return _joined([_sides(charges, weights, hg) for charges, weights, _, hg in self._derivatives])

    @functools.cached_property
    def squared_gradients(self) -> Sides:
        """Sums of g² for all units of all networks."""
        return _joined([_sides(charges, g, g) for charges, _, g, _ in self._derivatives])

    def grasp_defect(self) -> np.ndarray:
        """The predicted violation of conservation by the scores of GraSP, for all units."""
        squares = self.squared_gradients
        return grasp_defect(np.sqrt(squares.incoming)[:, None], np.sqrt(squares.outgoing)[:, None])

    @functools.cached_property
    def cuts(self) -> Sides:
        """The saliency of every cut of every network, and ⟨∂R/∂y, y⟩ at the outputs of the network."""
        found, totals = [], []
        for (name, _, x, labels), (_, weights, g, _) in zip(self._drawn, self._derivatives, strict=True):
            architecture = ZOO[name]

            def summed(names: tuple[tuple[str, ...], ...], weights: Weights = weights, g: Weights = g) -> list[float]:
                return [sum(float(np.sum(weights[each] * g[each])) for each in group) for group in names]

            y = np.asarray(architecture.apply(weights, x))
            total = float(np.sum(y * np.asarray(jax.grad(_loss)(y, labels))))
            residuals = cut_residuals(summed(architecture.cuts), summed(architecture.biases), total)
            found.append(residuals + total)
            totals.append(np.full(len(residuals), total))
        return Sides(np.concatenate(found), np.concatenate(totals))

    @property
    def losses(self) -> list[float]:
        """R, the cross-entropy of every network."""
        return [float(_loss(ZOO[name].apply(weights, x), labels)) for name, weights, x, labels in self._drawn]

    @functools.cached_property
    def tanh(self) -> tuple[np.ndarray, np.ndarray]:
        """Incoming minus outgoing saliency of tanh units, and its predicted value."""
        found, exact = [], []
        for draw in range(self.draws):
            random = np.random.default_rng([self.seed, draw, 1])
            x, labels = random.normal(size=(self.samples, 6)), random.integers(CLASSES, size=self.samples)
            into, bias, out = random.normal(size=(6, 10)), random.normal(size=10), random.normal(size=(10, CLASSES))
            z = x @ into + bias

            def loss(into: Any, bias: Any, out: Any, moved: Any, x: Any = x, labels: Any = labels) -> Any:
                return _loss((jnp.tanh(x @ into + bias) + moved) @ out, labels)

            slopes = jax.device_get(jax.grad(loss, argnums=(0, 1, 2, 3))(into, bias, out, np.zeros_like(z)))
            incoming = np.sum(into * slopes[0], axis=0) + bias * slopes[1]
            found.append(incoming - np.sum(out * slopes[2], axis=1))
            exact.append(activation_defect(slopes[3], z, np.tanh(z), 1 - np.tanh(z) ** 2))
        return np.concatenate(found), np.concatenate(exact)

    @functools.cached_property
    def running_mean(self) -> tuple[np.ndarray, np.ndarray]:
        """Drop in saliency across a normalisation layer with running means, and its predicted value."""
        found, exact = [], []
        for draw in range(self.draws):
            random = np.random.default_rng([self.seed, draw, 2])
            x, labels = random.normal(size=(self.samples, 6)), random.integers(CLASSES, size=self.samples)
            into, bias, shift = random.normal(size=(6, 10)), random.normal(size=10), random.normal(size=10)
            gain, variance = random.uniform(0.5, 1.5, size=(2, 10))
            mean, out = _MEAN_SPREAD * random.normal(size=10), random.normal(size=(10, CLASSES))

            def loss(
                into: Any,
                bias: Any,
                gain: Any,
                moved: Any,
                x: Any = x,
                labels: Any = labels,
                rest: Any = (mean, variance, shift, out),
            ) -> Any:
                mean, variance, shift, out = rest
                u = gain * (x @ into + bias - mean) / jnp.sqrt(variance) + shift + moved
                return _loss(jax.nn.relu(u) @ out, labels)

            slopes = jax.device_get(jax.grad(loss, argnums=(0, 1, 2, 3))(into, bias, gain, np.zeros(10)))
            found.append(np.sum(into * slopes[0], axis=0) + bias * slopes[1] - gain * slopes[2])
            exact.append(normalisation_defect(slopes[3], gain, mean, variance))
        return np.concatenate(found), np.concatenate(exact)

    @functools.cached_property
    def _drawn(self) -> list[tuple[str, Weights, np.ndarray, np.ndarray]]:
        """Architecture, weights, inputs and labels of every network."""
        found = []
        for place, name in enumerate(self.networks):
            for draw in range(self.draws):
                random = np.random.default_rng([self.seed, draw, 0, place])
                x = random.normal(size=(self.samples, *ZOO[name].sample))
                found.append((name, draw_weights(ZOO[name], random), x, random.integers(CLASSES, size=self.samples)))
        return found

    @functools.cached_property
    def _charges(self) -> dict[str, list[Charge]]:
        """The rescaling symmetries of each architecture, which relate the incoming to the outgoing weights of units."""
        found = {}
        for name in self.networks:
            _, weights, x, _ = next(each for each in self._drawn if each[0] == name)
            symmetries = find_symmetries(ZOO[name].apply, weights, x[:4]).symmetries
            found[name] = [each for each in symmetries if each.kind == "rescale"]
        return found

    @functools.cached_property
    def _derivatives(self) -> list[tuple[list[Charge], Weights, Weights, Weights]]:
        """Charges, weights, gradient g and product Hg of every network."""
        found = []
        for name, weights, x, labels in self._drawn:
            g, hg = jax.device_get(_gradient_and_product(ZOO[name], weights, x, labels))
            found.append((self._charges[name], weights, g, hg))
        return found


def _loss(outputs: Any, labels: Any) -> Any:
    return -jnp.mean(jax.nn.log_softmax(outputs)[jnp.arange(len(labels)), labels])


def _gradient_and_product(architecture: Architecture, weights: Weights, x: Any, labels: Any) -> tuple[Weights, Weights]:
    return _compiled(architecture.apply)(weights, x, labels)


@functools.cache
def _compiled(apply: Any) -> Any:
    def both(weights: Weights, x: Any, labels: Any) -> tuple[Weights, Weights]:
        def slope(at: Weights) -> Weights:
            return jax.grad(lambda p: _loss(apply(p, x), labels))(at)

        return jax.jvp(slope, (weights,), (slope(weights),))

    return jax.jit(both)


def _sides(charges: list[Charge], weights: Weights, slopes: Weights) -> Sides:
    """Sums of weights times slopes over the incoming and the outgoing weights of every unit."""
    sums: list[list[np.ndarray]] = [[], []]
    for charge in charges:
        for side, sign in zip(sums, (-1, 1), strict=True):
            parts = tuple(
                dataclasses.replace(part, factor=abs(part.factor)) for part in charge.parts if part.factor * sign > 0
            )
            side.append(np.asarray(dataclasses.replace(charge, parts=parts).identity(weights, slopes)))
    return Sides(*(np.concatenate(side) for side in sums))


def _joined(sides: list[Sides]) -> Sides:
    return Sides(*(np.concatenate(each) for each in zip(*sides, strict=True)))
