"""Moments of random deep linear networks: the variance of their outputs and the size of their NTK."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Moments", "initial_moments", "moments_by_width"]

_CHANNELS = 20  # number of inputs and of outputs; the moments are averages over them


class Moments(NamedTuple):
    """Means over networks, inputs of unit norm and outputs.

    Attributes:
        output_variance: Mean of f².
        kernel: Mean of Σ (∂f/∂W)².
    """

    output_variance: float
    kernel: float


def initial_moments(depth: int, width: int, gamma: float, draws: int, draw: np.random.Generator) -> Moments:
    """Moments of networks x W₁ ⋯ W_L with weights of variance width^−γ.

    Args:
        depth: Number of layers L.
        width: Width of the hidden layers.
        gamma: Exponent γ of the variance.
        draws: Number of networks.
        draw: Random generator.
    """
    sizes = [_CHANNELS, *(depth - 1) * [width], _CHANNELS]
    squares, kernels = np.zeros(draws), np.zeros(draws)
    for number in range(draws):
        weights = [width ** (-gamma / 2) * draw.normal(size=shape) for shape in itertools.pairwise(sizes)]
        # The gradient with respect to a layer is the product of all other layers.
        before = list(itertools.accumulate(weights, np.matmul, initial=np.eye(_CHANNELS)))
        after = list(itertools.accumulate(weights[::-1], lambda y, w: w @ y, initial=np.eye(_CHANNELS)))[::-1]
        squares[number] = np.mean(before[-1] ** 2)
        kernels[number] = sum(
            np.sum(before[layer] ** 2) * np.sum(after[layer + 1] ** 2) / _CHANNELS**2 for layer in range(depth)
        )
    return Moments(float(squares.mean()), float(kernels.mean()))


def moments_by_width(
    depths: Sequence[int], gammas: Sequence[float], widths: Sequence[int], *, draws: int, seed: int
) -> np.ndarray:
    """Moments for all depths, γ and widths, shape (moments, depths, gammas, widths)."""
    found = [
        initial_moments(depth, width, gamma, draws, np.random.default_rng([seed, 2, index, width]))
        for index, (depth, gamma) in enumerate(itertools.product(depths, gammas))
        for width in widths
    ]
    return np.array(found).T.reshape(len(Moments._fields), len(depths), len(gammas), len(widths))
