"""Gradient flow of the linearised network, solved mode by mode of its NTK."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from dynascope.compilation import filter_jit
from dynascope.flows.progress import report_progress
from dynascope.networks.two_layer import TwoLayer
from dynascope.validation import require_memory

__all__ = ["BLOCK", "COPIES", "TangentModes", "is_linear_in_weights", "tangent_modes"]

_ROUNDING = 1e-12  # fraction of the largest rate below which a mode is never learned
_STRAIGHT = 1e-9  # maximum curvature of a linear function, relative to the change of the outputs
BLOCK = 2**23  # entries of J in memory at once
COPIES = 3  # copies of the kernel matrix during its decomposition


class TangentModes(NamedTuple):
    """Modes of the NTK of a network at initialisation, on given samples.

    Attributes:
        rates: Decay rate of the residual along each mode, in increasing order, shape (modes,).
        powers: E r² of the initial residual along each mode, shape (modes,).
        rest: E r² of the part of the residual outside all modes.
        weights: The norm ‖θ‖ of the initial weights.
    """

    rates: Float[np.ndarray, " modes"]
    powers: Float[np.ndarray, " modes"]
    rest: float
    weights: float

    def loss(self, times: Float[np.ndarray, " time"]) -> Float[np.ndarray, " time"]:
        """Compute L = ½ E‖f − y‖² of the linearised network."""
        return (self.rest + np.exp(-2 * np.outer(times, self.rates)) @ self.powers) / 2

    def movement(self, time: float) -> float:
        """Compute ‖θ(t) − θ(0)‖/‖θ(0)‖ of the linearised network."""
        moved = self.powers / self.rates * np.expm1(-self.rates * time) ** 2
        return math.sqrt(float(np.sum(moved))) / max(self.weights, 1e-300)


def tangent_modes(network: Any, inputs: Float[np.ndarray, "n d"], targets: Float[np.ndarray, "n c"]) -> TangentModes:
    """Return the modes of JJᵀ/n (or JᵀJ/n if smaller); J = ∂f/∂θ has one row per output of each sample.

    Along a mode with rate κ, the residual r = f − y of the linearised network decays as exp(−κ t).

    Args:
        network: The network with its initial weights.
        inputs: x.
        targets: y.

    Example:
        >>> modes = tangent_modes(TwoLayer(1, 1, 1), np.array([[1.0], [-1.0]]), np.array([[2.0], [-2.0]]))
        >>> modes.rates.shape, modes.rest < 1e-9
        ((1,), True)
    """
    jacobian, weights = _tangent_features(network)
    with jax.enable_x64(True):
        residual = (np.asarray(network(inputs), np.float64) - targets).ravel()
    samples, (rows, columns) = len(inputs), (residual.size, weights.size)
    side = min(rows, columns)
    require_memory(
        8.0 * COPIES * side**2,
        f"a {side} × {side} kernel matrix",
        argument="theory",
        value=side,
        remedy="use fewer samples or a smaller network",
    )
    blocks = _Blocks(jacobian, inputs, max(BLOCK // (columns * targets.shape[1]), 1))
    matrix = np.zeros((side, side))
    if columns < rows:
        slope = np.zeros(columns)
        for place, part in blocks:
            matrix += part.T @ part
            slope += part.T @ residual[place]
        rates, axes = np.linalg.eigh(matrix / samples)
        # Squared residual along each mode, times its rate.
        along = (axes.T @ slope) ** 2 / samples**2
    else:
        for place, part in blocks:
            for other, one in blocks:
                if other.start <= place.start:
                    matrix[place, other] = part @ one.T
                    matrix[other, place] = matrix[place, other].T
        rates, axes = np.linalg.eigh(matrix / samples)
        along = rates * (axes.T @ residual) ** 2 / samples
    learned = rates > _ROUNDING * max(rates[-1], 0.0)
    powers = along[learned] / rates[learned]
    rest = float(residual @ residual) / samples - float(np.sum(powers))
    return TangentModes(rates[learned], powers, max(rest, 0.0), float(np.linalg.norm(weights)))


def is_linear_in_weights(network: Any, inputs: Float[np.ndarray, "n d"]) -> bool:
    """Whether f(θ+δ) + f(θ−δ) = 2f(θ) for a random direction δ, about as large as θ.

    Example:
        >>> is_linear_in_weights(TwoLayer(1, 2, 1), np.ones((1, 1)))
        False
    """
    draw = np.random.default_rng(0)

    def step(leaf: np.ndarray) -> np.ndarray:
        size = float(np.sqrt(np.mean(leaf**2))) if np.size(leaf) else 0.0
        return (size or 1.0) * draw.normal(size=np.shape(leaf))

    params, static = eqx.partition(network, eqx.is_inexact_array)
    params = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
    steps = jax.tree.map(step, params)
    with jax.enable_x64(True):
        there, here, back = (
            np.asarray(_outputs(jax.tree.map(functools.partial(_moved, sign), params, steps), static, inputs))
            for sign in (1, 0, -1)
        )
    change = float(np.linalg.norm(there - back))
    return float(np.linalg.norm(there + back - 2 * here)) <= _STRAIGHT * change


def _moved(sign: int, leaf: np.ndarray, step: np.ndarray) -> np.ndarray:
    return leaf + sign * step


class _Blocks:
    """Blocks of J for a few samples each; iteration yields the rows of each block, and the block."""

    def __init__(self, jacobian: Callable[[np.ndarray], np.ndarray], inputs: np.ndarray, size: int):
        self.jacobian, self.inputs, self.size = jacobian, inputs, min(size, len(inputs))

    def __iter__(self) -> Iterator[tuple[slice, np.ndarray]]:
        for start in range(0, len(self.inputs), self.size):
            # Blocks of equal length share a program.
            report_progress(start, len(self.inputs), "samples")
            part = self.inputs[start : start + self.size]
            filled = np.concatenate([part, np.repeat(part[-1:], self.size - len(part), axis=0)])
            found = self.jacobian(filled)[: len(part)]
            outputs = found.shape[1]
            yield slice(start * outputs, (start + len(part)) * outputs), found.reshape(len(part) * outputs, -1)


def _tangent_features(network: Any) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """Return ∂f/∂θ (n, c, weights) as a function of the inputs, and θ; for two layers in closed form, else by JAX."""
    if isinstance(network, TwoLayer):
        first, second = (np.asarray(each, np.float64) for each in (network.first, network.second))
        return lambda x: _of_two_layers(network.activation, first, second, x), np.append(first, second)
    params, static = eqx.partition(network, eqx.is_inexact_array)
    params = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)

    def of(x: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            parts = jax.tree.leaves(jax.device_get(_by_parameter(params, static, x)))
        return np.concatenate([part.reshape(*part.shape[:2], -1) for part in parts], axis=2)

    return of, np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(params)])


@filter_jit
def _outputs(params: Any, static: Any, x: Any) -> Any:
    return eqx.combine(params, static)(x)


@filter_jit
def _by_parameter(params: Any, static: Any, x: Any) -> Any:
    return jax.jacrev(lambda params: eqx.combine(params, static)(x))(params)


def _of_two_layers(activation: Any, first: np.ndarray, second: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return ∂f/∂θ, with the slope σ'(z) = k (p if z > 0, else −(−1)ᵏ q) zᵏ⁻¹ of a homogeneous activation."""
    hidden = x @ first
    power = activation.degree
    side = np.where(hidden > 0, activation.positive, activation.negative * (-1) ** power)
    inner = np.einsum("ni,nk,kc->ncik", x, power * side * hidden ** (power - 1), second)
    outer = np.einsum("nk,ce->ncke", side * hidden**power, np.eye(second.shape[1]))
    return np.concatenate([part.reshape(*part.shape[:2], -1) for part in (inner, outer)], axis=2)
