"""Tasks with whitened inputs, and networks that are balanced at the start or have converged on one of them."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np
import xarray as xr

from dynascope.flows import gradient_flow
from dynascope.networks import TwoLayer
from dynascope.networks.balanced_linear import balanced_linear
from dynascope.protocols import Learnable
from dynascope.tasks import Task, regression
from dynascope.theory import transfer as theory

__all__ = [
    "balanced_networks",
    "converged",
    "converged_layers",
    "flow_of_map",
    "random_map",
    "random_rotation",
    "slowest_rate",
    "whitened_task",
]


def _learned_map(network: TwoLayer) -> Any:
    return network.first @ network.second


_PRODUCT = {"product": (_learned_map, ("feature", "target"))}


def slowest_rate(inputs: int, outputs: int, weakest: float, balances: np.ndarray) -> float:
    """The smallest rate at which networks as wide as they have inputs or outputs converge, over all λ.

    It is the gap between the eigenvalue ω of the weakest mode and that of the strongest direction that is left out.
    """
    omega = np.hypot(weakest, balances / 2)
    left_out = -omega if inputs == outputs else np.sign(outputs - inputs) * balances / 2
    return float(np.min(omega - left_out))


def random_map(draw: np.random.Generator, inputs: int, outputs: int, strengths: np.ndarray) -> np.ndarray:
    """U diag(s) Vᵀ, shape (inputs, outputs), between random directions that are turned but not mirrored.

    Balanced layers, λ = 0, cannot change the sign of a determinant, so square maps of one sign can be learned in turn.
    """
    left, right = (random_rotation(draw, dimension)[:, : len(strengths)] for dimension in (inputs, outputs))
    return left * strengths @ right.T


def random_rotation(draw: np.random.Generator, dimension: int) -> np.ndarray:
    """A random orthogonal matrix of determinant one."""
    rotation, _ = np.linalg.qr(draw.normal(size=(dimension, dimension)))
    rotation[:, 0] *= np.sign(np.linalg.det(rotation))
    return rotation


def whitened_task(target_map: np.ndarray, name: str) -> Task:
    """Inputs with E[x xᵀ] = I exactly, and targets x Σ."""
    inputs = len(target_map)
    drawn = regression(samples=4 * inputs, input_covariance=[1.0] * inputs, target_map=target_map, exact_moments=True)
    return type(drawn)(drawn.inputs, drawn.targets, name=name, description=drawn.description)


def balanced_networks(inputs: int, outputs: int, balances: np.ndarray, *, seed: int) -> list[TwoLayer]:
    """Random networks with W₂ W₂ᵀ − W₁ᵀ W₁ = λ I, one for each λ, as wide as they have inputs or outputs."""
    width, networks = min(inputs, outputs), []
    for balance in balances:
        network = balanced_linear(inputs, width, outputs, balance=float(balance), seed=seed)
        mirrored = inputs == outputs and np.linalg.det(network.first @ network.second) < 0
        signs = np.where(mirrored & (np.arange(outputs) == 0), -1.0, 1.0)
        networks.append(eqx.tree_at(lambda layers: layers.second, network, network.second * signs))
    return networks


def flow_of_map(networks: list[TwoLayer], task: Learnable, times: np.ndarray, **options: Any) -> xr.Dataset:
    """`flows.gradient_flow` over these times, with W₁ W₂ of every network as `product`."""
    return gradient_flow(networks, task, duration=times[-1], save=times, statistics=_PRODUCT, **options)


def converged(networks: list[TwoLayer], task: Learnable, times: np.ndarray, **options: Any) -> list[TwoLayer]:
    """The networks after that flow."""
    # With as many times and the same statistics, training on another task is the same compiled program.
    options = {"duration": times[-1], "save": times, "statistics": _PRODUCT, **options}
    _, stacked = gradient_flow(networks, task, return_networks=True, **options)
    return [jax.tree.map(lambda weights, i=i: weights[i], stacked) for i in range(len(networks))]


def converged_layers(target: np.ndarray, balances: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Both layers in which every start of a balance λ ends, for each λ."""
    first, second = zip(*(theory.converged_layers(target, balance, width) for balance in balances), strict=True)
    return np.stack(first), np.stack(second)
