"""Two-layer linear networks with λ-balanced weights."""

from __future__ import annotations

from collections.abc import Iterable

import equinox as eqx
import numpy as np

from dynascope.networks.two_layer import TwoLayer
from dynascope.validation import checked, require
from dynascope.validation.bounded import FiniteFloat, PositiveFloat, PositiveInt, Seed

__all__ = ["balanced_linear", "balanced_networks", "isotropic_linear"]


@checked
def balanced_linear(
    inputs: PositiveInt,
    width: PositiveInt,
    outputs: PositiveInt,
    *,
    balance: FiniteFloat = 0.0,
    scale: PositiveFloat = 1.0,
    seed: Seed = 0,
) -> TwoLayer:
    """Draw a random λ-balanced linear network.

        f(x) = x W₁ W₂,   W₂ W₂ᵀ − W₁ᵀ W₁ = λ I

    The smaller layer has Gaussian entries with standard deviation scale/√width. The smaller layer determines the other
    layer up to a random rotation of the inputs or outputs.

    Args:
        inputs: Number d of inputs.
        width: Number h of hidden neurons, at most c for λ > 0 and at most d for λ < 0.
        outputs: Number c of outputs.
        balance: λ, positive if the second layer is larger than the first.
        scale: Size of the smaller layer; the size of the other layer is √(scale² + |λ|). If the weights are later
            multiplied by s, λ is multiplied by s².
        seed: Seed of the draw.

    Raises:
        InputError: If a size is not positive, or if the width does not allow the given λ.

    Example:
        >>> network = balanced_linear(4, 2, 3, balance=1.5, seed=1)
        >>> (network.second @ network.second.T - network.first.T @ network.first).round(12) + 0.0
        array([[1.5, 0. ],
               [0. , 1.5]])
    """
    outer, limit = (outputs, "outputs") if balance > 0 else (inputs, "inputs")
    require(
        balance == 0 or width <= outer,
        f"width is {width}, but a balance of {balance:g} limits it to the number of {limit}, {outer}",
        argument="width",
        value=width,
        remedy=f"choose a width of at most {outer}, or a balance of zero",
    )
    draw = np.random.default_rng(seed)
    small, large = (inputs, outputs) if balance >= 0 else (outputs, inputs)
    rank = min(width, small, large) if balance == 0 else min(width, small)
    left, sizes, right = np.linalg.svd(draw.normal(size=(small, width)) * scale / np.sqrt(width), full_matrices=False)
    one = (left[:, :rank] * sizes[:rank]) @ right[:rank]
    # The squared singular values of the other layer, in the same basis of hidden neurons.
    squares = np.zeros(width)
    with np.errstate(over="ignore"):
        squares[:rank] = sizes[:rank] ** 2
    basis = np.linalg.svd(one, full_matrices=True)[2]
    kept = min(width, large)
    axes = np.linalg.qr(draw.normal(size=(large, kept)))[0]
    with np.errstate(invalid="ignore"):
        other = (basis[:kept].T * np.sqrt(squares[:kept] + abs(balance))) @ axes.T
    require(
        bool(np.isfinite(other).all()),
        f"scale is {scale:g}, so the squares of the weights overflow",
        argument="scale",
        value=scale,
        remedy="choose a smaller scale",
    )
    first, second = (one, other) if balance >= 0 else (other.T, one.T)
    network = TwoLayer(inputs, width, outputs, activation="linear")
    return eqx.tree_at(lambda each: (each.first, each.second), network, (first, second))


def balanced_networks(
    sizes: tuple[int, int, int],
    balances: Iterable[float],
    *,
    scale: PositiveFloat = 1.0,
    rate_ratio: float = 1.0,
    one_sign: bool = False,
    seed: Seed = 0,
) -> list[TwoLayer]:
    """Draw one network with `balanced_linear` for each λ.

    Args:
        sizes: Numbers of inputs, hidden neurons and outputs.
        balances: λ of each network, the conserved balance of the rescaled layers (η₂/η₁)^¼ W₁ and (η₁/η₂)^¼ W₂.
        scale: Size of the smaller layer, as in `balanced_linear`.
        rate_ratio: Ratio η₁/η₂ of the learning rates.
        one_sign: Whether the maps of square networks are all drawn with positive determinant.
        seed: Seed of the draws.
    """
    ratio, networks = rate_ratio**0.25, []
    for balance in balances:
        network = balanced_linear(*sizes, balance=float(balance), scale=scale, seed=seed)
        first, second = network.first * ratio, network.second / ratio
        if one_sign and sizes[0] == sizes[2] and np.linalg.det(first @ second) < 0:
            second[:, 0] *= -1.0
        networks.append(eqx.tree_at(lambda each: (each.first, each.second), network, (first, second)))
    return networks


def isotropic_linear(
    start: np.ndarray, imbalance: float, *, first_rate: float = 1.0, second_rate: float = 1.0
) -> TwoLayer:
    """Factorise an initial map, shape (d, c), into a linear network with η₁ W₂ W₂ᵀ − η₂ W₁ᵀ W₁ = δ I.

    The width equals the number of outputs for δ > 0 and the number of inputs for δ < 0.
    """
    left, sizes, right = np.linalg.svd(start)
    ratio, rate = (first_rate / second_rate) ** 0.25, (first_rate * second_rate) ** 0.5
    basis = right.T if imbalance > 0 else left
    width, half = len(basis), abs(imbalance) / (2 * rate)
    large = np.sqrt(np.hypot(np.pad(sizes, (0, width - len(sizes))), half) + half)
    square = (basis * large) @ basis.T
    inverse = np.linalg.inv(square)
    first, second = (start @ inverse, square) if imbalance > 0 else (square, inverse @ start)
    network = TwoLayer(len(start), width, start.shape[1], activation="linear")
    return network.with_neurons(np.hstack([first.T * ratio, second / ratio]))
